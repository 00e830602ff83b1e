"""Every stage of both pipelines computes what the sample says, on odd sizes too."""

import re
from pathlib import Path

import pytest
from covering import fraction, one_of
from paths import SAMPLES
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

GEMMS = [
    path
    for path in sorted(SAMPLES.glob("gemm_*.mlir"))
    if "collective.shard" not in path.read_text()
]

MESH = "collective.mesh @mesh {x = 2, y = 3}\n"

SPMD = (
    "decompose{accumulator=input}",
    "decompose{accumulator=f32}",
    "decompose,stream{dim=N}",
    "decompose,distribute{dim=N axes=x,y},insert-collectives",
    "decompose,distribute{dim=M axes=y,x},insert-collectives",
    "decompose,distribute{dim=K axes=x},insert-collectives",
    "decompose,distribute{dim=N axes=x},distribute{dim=M axes=y},insert-collectives",
    "decompose,stream{dim=N},distribute{dim=N axes=x,y},insert-collectives",
    "decompose,distribute{dim=N axes=x,y},insert-collectives,"
    "place-collectives{kind=gather}",
)


def hardware(name: str) -> str:
    return f'attach-hardware{{path="{SAMPLES / "hardware" / name}.yaml"}},'


EDGE = hardware("edge") + (
    "decompose{accumulator=input},distribute{dim=N axes=cx,cy,kx,ky},"
    "insert-collectives,place-collectives"
)
GPU = hardware("h200x1") + "decompose{accumulator=f32}"

SCHEDULES = (
    EDGE + '{at="GB"},fuse{strategy=full}',
    EDGE + '{at="GB"},fuse{strategy=partial}',
    EDGE + '{at="GB"},fuse{strategy=none}',
    EDGE + '{at="OB"},fuse{strategy=full}',
    GPU + ",fuse",
    GPU + ",fuse,tile",
    GPU + ",stream{dim=N},fuse",
    GPU + ",stream{dim=N},fuse,tile,outline-kernels",
)


def resized(path: Path, **sizes: int) -> str:
    """Return a sample with its M = 128, K = 64 and N = 256 replaced."""
    old = {"128": sizes["M"], "64": sizes["K"], "256": sizes["N"]}
    return re.sub(
        r"(?<![0-9])(128|64|256)(?=x)",
        lambda match: str(old[match.group()]),
        path.read_text(),
    )


def title(part: Path | str) -> str:
    """Return the name of a part of a case."""
    return part.stem if isinstance(part, Path) else part


def check(module: ModuleOp, pipeline: str) -> None:
    name = next(op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp))
    assert_same_meaning(module, run_passes(module, pipeline), name)


@pytest.mark.parametrize(("path", "pipeline"), fraction(GEMMS, SPMD), ids=title)
def test_spmd_level(path: Path, pipeline: str):
    check(parse_module(MESH + resized(path, M=5, K=7, N=19)), pipeline)


@one_of(4)
@pytest.mark.parametrize(("path", "pipeline"), fraction(GEMMS, SCHEDULES), ids=title)
def test_schedule_level(path: Path, pipeline: str):
    check(parse_module(resized(path, M=5, K=7, N=19)), pipeline)


@one_of(6)
@pytest.mark.parametrize(
    ("path", "strategy"),
    fraction(GEMMS, ("full", "partial", "none"), of=3),
    ids=title,
)
def test_accelerator_tiles(path: Path, strategy: str):
    pipeline = f'{EDGE}{{at="GB"}},fuse{{strategy={strategy}}},tile'
    check(parse_module(path.read_text()), pipeline)
