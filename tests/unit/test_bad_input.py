"""Passes in the wrong order and the like: one sentence, exit code 1, no file left."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from covering import covering, one_of
from paths import ROOT
from programs import graph_text
from semantics import parse_module
from tool_run import comet_opt, comet_opt_command

from comet.dialects.arch import attached_system

HARDWARE = ROOT / "samples" / "hardware"
SIZES = (8, 4, 64)
GRAPH = graph_text("gemm_softmax", SIZES)
EDGE = f'attach-hardware{{path="{HARDWARE}/edge.yaml"}}'
H200 = f'attach-hardware{{path="{HARDWARE}/h200x1.yaml"}}'

ACCELERATOR = {
    "graph": EDGE,
    "elementary": "decompose{accumulator=input},distribute{dim=N axes=cx,cy,kx,ky}",
    "spmd": "insert-collectives",
    "placed": "place-collectives",
    "schedule": "fuse{strategy=full}",
    "mapping": "tile,lower-to-comet",
}
GPU = {
    "graph": H200,
    "elementary": "decompose",
    "schedule": "stream,fuse{strategy=full},tile",
    "dataflow": "outline-kernels",
    "target": "lower-to-triton",
}


@cache
def text_at(machine: str, level: str) -> str:
    """Return gemm_softmax at a level of the way down to a machine."""
    text = GRAPH
    for name, passes in (ACCELERATOR if machine == "edge" else GPU).items():
        run = comet_opt(text, passes)
        assert run.code == 0, run.err
        text = run.out
        if name == level:
            return text
    raise ValueError(level)


TO_ELEMENTARY, TO_SCHEDULE = "run decompose first", "run decompose, fuse first"
TO_DATAFLOW = "run decompose, fuse, outline-kernels first"
LATE = "run {} before {}"
TOO_EARLY: dict[tuple[str, str], str] = {
    **{
        ("graph", name): TO_ELEMENTARY
        for name in (
            "lower-views",
            "sink-renames",
            "sink-scales{scales=all}",
            "stream",
            "distribute{dim=N axes=cx}",
            "insert-collectives",
            "place-collectives",
            "fuse{strategy=full}",
            "fuse{strategy=auto}",
        )
    },
    **{
        ("graph", name): TO_SCHEDULE
        for name in ("tile", "bind", "annotate-cost", "lower-to-comet")
    },
    ("graph", "outline-kernels"): TO_SCHEDULE,
    ("graph", "lower-to-triton"): TO_DATAFLOW,
    **{
        (level, name): "run fuse first"
        for level in ("elementary", "spmd")
        for name in (
            "tile",
            'tile{factors="c_dram: M=2"}',
            "bind",
            "annotate-cost",
            "lower-to-comet",
            "outline-kernels",
        )
    },
    ("spmd", "fuse{strategy=full}"): "run place-collectives first",
    ("spmd", "fuse{strategy=auto}"): "run place-collectives first",
    ("elementary", "lower-to-triton"): "run fuse, outline-kernels first",
    ("schedule", "lower-to-triton"): "run outline-kernels first",
}
MAKERS = {
    "elementary": "decompose",
    "spmd": "insert-collectives",
    "schedule": "fuse",
    "dataflow": "outline-kernels",
    "target": "lower-to-triton",
}
BEFORE = {
    "decompose": ("spmd", "schedule", "dataflow", "target"),
    "lower-views": ("schedule", "dataflow", "target"),
    "sink-renames": ("spmd", "schedule", "dataflow", "target"),
    "sink-scales{scales=all}": ("spmd", "schedule", "dataflow", "target"),
    "stream": ("spmd", "schedule", "dataflow", "target"),
    "distribute{dim=N axes=cx}": ("spmd", "schedule"),
    "propagate-shardings": ("spmd", "schedule", "dataflow", "target"),
    "insert-collectives": ("spmd", "schedule", "dataflow", "target"),
    "merge-collectives": ("schedule", "dataflow", "target"),
    "place-collectives": ("schedule", "dataflow", "target"),
    "fuse": ("schedule", "dataflow", "target"),
    "tile": ("dataflow", "target"),
    "bind": ("dataflow", "target"),
    "annotate-cost": ("target",),
    "outline-kernels": ("dataflow", "target"),
    "lower-to-comet": ("dataflow", "target"),
    "lower-to-triton": ("target",),
    "comet-accelerator": ("spmd", "schedule"),
}
TOO_LATE = {(level, spec) for spec, levels in BEFORE.items() for level in levels}


def machine_of(level: str) -> str:
    return "h200" if level in ("dataflow", "target") else "edge"


@one_of(3)
@pytest.mark.parametrize("case", TOO_EARLY, ids=" ".join)
def test_a_pass_that_comes_too_early_says_what_to_run_first(case: tuple[str, str]):
    level, spec = case
    sentence = comet_opt(text_at("edge", level), spec).sentence
    assert sentence.startswith("in.mlir:")
    assert sentence.endswith(TOO_EARLY[case])


@one_of(3)
@pytest.mark.parametrize("case", covering(sorted(TOO_LATE), 1), ids=" ".join)
def test_a_pass_that_comes_too_late_says_where_it_belongs(case: tuple[str, str]):
    level, spec = case
    sentence = comet_opt(text_at(machine_of(level), level), spec).sentence
    name = spec.partition("{")[0]
    # The pipeline starts by decomposing.
    name = "decompose" if name == "comet-accelerator" else name
    again = "it has run already"
    belongs = f"run {name} before {MAKERS[level]}"
    assert sentence.endswith(again if name == MAKERS[level] else belongs)


@one_of(3)
@pytest.mark.parametrize(
    "spec",
    [
        "decompose",
        "sink-renames",
        "sink-scales{scales=all}",
        "stream",
        "distribute{dim=N axes=cx}",
        "insert-collectives",
        "place-collectives",
        "fuse",
        "tile",
        "bind",
        "lower-to-comet",
        "comet-accelerator",
        "outline-kernels",
        "lower-to-triton",
    ],
)
def test_nothing_but_prices_comes_after_a_mapping(spec: str):
    sentence = comet_opt(text_at("edge", "mapping"), spec).sentence
    assert "the module is a COMET mapping already" in sentence
    assert sentence.endswith("before lower-to-comet")


@pytest.mark.parametrize(
    "spec",
    ["fuse", "tile", "annotate-cost", "comet-accelerator", "triton-distributed"],
)
def test_a_pass_that_needs_hardware_says_how_to_attach_it(spec: str):
    text = comet_opt(GRAPH, "decompose" if spec == "fuse" else "").out
    if spec == "tile":
        tree = parse_module(text_at("edge", "schedule"))
        tree.body.block.erase_op(attached_system(tree))
        text = str(tree)
    assert "attach-hardware" in comet_opt(text, spec).sentence


@one_of(2)
@pytest.mark.parametrize(
    ("machine", "level", "target"),
    [
        *(("edge", level, "comet") for level in ("graph", "spmd", "schedule")),
        *(("h200", level, "comet") for level in ("dataflow", "target")),
        *(("h200", level, "triton") for level in ("graph", "schedule", "dataflow")),
        ("edge", "mapping", "triton"),
    ],
)
def test_a_target_at_the_wrong_level(machine: str, level: str, target: str):
    sentence = comet_opt(text_at(machine, level), target=target).sentence
    way_out = {"comet": ("lower-to-comet first",), "triton": ("triton", "decompose")}
    assert any(words in sentence for words in way_out[target])


UNSUPPORTED = {
    "branches": """
func.func @f(%a: tensor<8x4xf16>) -> tensor<8x4xf16> {
  "cf.br"() [^bb1] : () -> ()
^bb1:
  func.return %a : tensor<8x4xf16>
}
""",
    "other ops": """
func.func @f(%a: tensor<8x4xf16>) -> tensor<8x4xf16> {
  %b = arith.addf %a, %a : tensor<8x4xf16>
  func.return %b : tensor<8x4xf16>
}
""",
    "scalars": """
func.func @f(%a: f16) -> f16 {
  func.return %a : f16
}
""",
    "no result": """
func.func @f(%a: tensor<8x4xf16>) {
  func.return
}
""",
    "no body": "func.func private @f(tensor<8x4xf16>) -> tensor<8x4xf16>",
    "nothing": "",
    "two functions": GRAPH + GRAPH.replace("@main", "@other"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_is_no_tensor_program_is_rejected(case: str):
    assert comet_opt(UNSUPPORTED[case], f"{H200},triton-distributed", "triton").sentence


def test_output_files_appear_whole_or_not_at_all(tmp_path: Path):
    good, out = tmp_path / "in.mlir", tmp_path / "out"
    good.write_text(GRAPH)
    target = f'comet{{dir="{out}"}}'

    def run(passes: str) -> int:
        return comet_opt_command([str(good), "-t", target, "-p", passes]).code

    assert run(f"{EDGE},comet-accelerator{{dim=N at=L3}}") == 1
    assert not out.exists()
    given = "strategy=full dim=N stream=false pad=none"
    assert run(f"{EDGE},comet-accelerator{{{given}}}") == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["arch.yaml", "constants.yaml", "mapping.yaml", "problem.yaml"]
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert run(f"{EDGE},comet-accelerator{{strategy=none dim=N at=L3}}") == 1
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_new_process_says_the_same():
    arguments = ["-p", f"{EDGE},comet-accelerator{{dim=Q}}"]
    run = subprocess.run(
        [sys.executable, "-m", "comet.tools.comet_opt", *arguments],
        input=GRAPH,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    (line,) = run.stderr.splitlines()
    assert "there is no dimension Q to shard; there are M, K, N; name" in line
