"""Every named op: its meaning, at every stage of both pipelines, and its targets."""

import random
from functools import partial
from io import StringIO
from itertools import cycle
from pathlib import Path

import pytest
from accelerators import attached
from comet_rules import check
from covering import EVERY_CASE, covering, one_of, some
from named_ops import NAMED_OPS, NamedOp
from paths import SAMPLES
from programs import MESHES, mesh_text
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from trees import random_tree
from triton_modules import check_all, emitted, hardware
from xdsl.printer import Printer
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.dialects.compound import Compound
from comet.dialects.compound.named import CompoundOp
from comet.interpreter import formulas, run
from comet.passes.graph.decompose.rules import DECOMPOSED

STRATEGIES = ("none", "partial", "full")
AT = {4: "GB", 16: "OB"}
"""Where the collectives of each machine are."""
each_op = pytest.mark.parametrize("op", NAMED_OPS, ids=lambda op: op.title)
TILED = [op for op in NAMED_OPS if not op.positions]
each_tiled_op = pytest.mark.parametrize("op", TILED, ids=lambda op: op.title)
STREAMED = [op for op in NAMED_OPS if {"N", "S"} & set(op.odd)]
POSITIONED = [op for op in NAMED_OPS if op.positions]
DISTRIBUTED = [(op, dim) for op in NAMED_OPS for dim in op.dims]
FORMS = [
    (op, stream)
    for op in NAMED_OPS
    for stream in ("", "stream,")[: 1 + (op in STREAMED)]
]


def title(part: object) -> str:
    """Return the name of a part of a case."""
    return part.title if isinstance(part, NamedOp) else str(part)


def test_every_op_is_complete():
    kinds = {kind for kind in Compound.operations if issubclass(kind, CompoundOp)}
    assert {op.kind for op in NAMED_OPS} == kinds
    assert {kind.name for kind in kinds} == DECOMPOSED
    for kind in kinds:
        assert hasattr(formulas, kind.name.removeprefix("compound."))
    for op in NAMED_OPS:
        assert (SAMPLES / f"{op.title}.mlir").exists()


@each_op
def test_round_trips(op: NamedOp):
    module = parse_module(op.text(op.odd))
    assert module.is_structurally_equivalent(parse_module(str(module)))
    generic = StringIO()
    Printer(generic, print_generic_format=True).print_op(module)
    assert module.is_structurally_equivalent(parse_module(generic.getvalue()))


@each_op
def test_meaning(op: NamedOp):
    module = parse_module(op.text(op.odd))
    inputs = random_inputs(module, "main", seed=3)
    assert_close(run(module, "main", inputs), [op.expected(*inputs)])


@one_of(2)
@pytest.mark.parametrize("accumulator", ["f32", "input"])
@each_op
def test_decomposition(op: NamedOp, accumulator: str):
    before = parse_module(op.text(op.odd))
    after = run_passes(before, f"decompose{{accumulator={accumulator}}}")
    assert_same_meaning(before, after, "main")
    assert_same_meaning(before, after, "main", after_name="main__reference")


@one_of(3)
@each_op
def test_sample(op: NamedOp):
    """The sample keeps its meaning; its dimensions can be distinguished by size."""
    before = parse_module((SAMPLES / f"{op.title}.mlir").read_text())
    assert_same_meaning(before, run_passes(before, "decompose"), op.title)
    function = SymbolTable.lookup_symbol(before, op.title)
    assert function is not None
    extents = next(o for o in function.walk() if isinstance(o, op.kind)).named_extents()
    assert len(set(extents.values())) == len(extents)


@one_of(2)
@pytest.mark.parametrize("seed", range(2 if EVERY_CASE else 1))
@pytest.mark.parametrize("op", STREAMED, ids=lambda op: op.title)
def test_streamed_under_any_tree(op: NamedOp, seed: int):
    before = run_passes(parse_module(op.text(op.odd)), "decompose")
    after = run_passes(before, "stream")
    generator = random.Random(seed)
    tree = partial(random_tree, generator=generator)
    assert_same_meaning(before, after, "main", seed=seed, chunks=tree)


@one_of(4)
@pytest.mark.parametrize(
    ("op", "dim", "axes", "stream"),
    covering(
        (
            (op, dim, axes, stream)
            for op, stream in FORMS
            for dim in op.dims
            for axes in MESHES
        ),
        paired=2,
    ),
    ids=title,
)
def test_distributed(op: NamedOp, dim: str, axes: dict[str, int], stream: str):
    before = parse_module(mesh_text(axes) + op.text(op.odd))
    distribute = f"distribute{{dim={dim} axes={','.join(axes)}}}"
    pipeline = f"decompose,{stream}{distribute},insert-collectives"
    assert_same_meaning(before, run_passes(before, pipeline), "main")


@one_of(2)
@pytest.mark.parametrize(
    ("op", "dim", "strategy", "machine"),
    covering(
        (
            (op, dim, strategy, machine)
            for op, dim in DISTRIBUTED
            if op in TILED
            for strategy in STRATEGIES
            for machine in (4, 16)
        ),
        1,
    ),
    ids=title,
)
def test_schedules_of_accelerators(op: NamedOp, dim: str, strategy: str, machine: int):
    before = parse_module(op.text(op.odd))
    pipeline = (
        f"{attached(machine)},decompose{{accumulator=input}},"
        f"distribute{{dim={dim} axes=cx,cy,kx,ky}},insert-collectives,"
        f"place-collectives{{at={AT[machine]}}},fuse{{strategy={strategy}}}"
    )
    assert_same_meaning(before, run_passes(before, pipeline), "main")


@one_of(3)
@pytest.mark.parametrize(
    ("op", "strategy"),
    [
        (op, strategy)
        for index, op in enumerate(TILED)
        for number, strategy in enumerate(("partial", "full", "none", "auto"))
        if EVERY_CASE or index % 2 == number
        if strategy != "partial" or "H" not in op.even  # the tool takes two matrices
    ],
    ids=title,
)
def test_files_break_no_rule(op: NamedOp, strategy: str):
    machine = "cloud" if TILED.index(op) % 2 else "edge"
    before = parse_module(op.text(op.even))
    dim = "M" if "M" in op.even else "E"
    batch = [each for each in op.result[:-2] if each != dim]
    loops = " ".join(f"{each}={op.even[each]}" for each in batch)
    factors = f"y_dram: {loops}" if loops else ""
    options = f"strategy={strategy} stream=false pad=none dim={dim}"
    if strategy in ("full", "partial"):
        options += f' factors="{factors}"'
    pipeline = f"{hardware(f'{machine}.yaml')},comet-accelerator{{{options}}}"
    assert check(write_files(run_passes(before, pipeline))) == []


@one_of(4)
@pytest.mark.parametrize(
    ("op", "stream", "strategy"),
    covering(
        ((op, stream, strategy) for op, stream in FORMS for strategy in STRATEGIES), 1
    ),
    ids=title,
)
def test_kernels_of_a_gpu(op: NamedOp, stream: str, strategy: str):
    before = parse_module(op.text(op.odd))
    gpu = hardware("h200x1.yaml")
    fuse = f"fuse{{strategy={strategy}}},canonicalize,cse,tile,outline-kernels"
    after = run_passes(before, f"{gpu},decompose,lower-views,{stream}{fuse}")
    assert_same_meaning(before, after, "main")


def test_emitted_kernels_agree_with_their_references(tmp_path: Path):
    """With each strategy in turn; a search among them is part of the dry run."""
    pipeline = f"{hardware('h200x1.yaml')},triton-distributed"
    sources = {
        op.title: emitted(op.text(op.odd), f"{pipeline}{{strategy={strategy}}}")
        for op, strategy in some(zip(NAMED_OPS, cycle(("full", "partial", "none"))), 4)
    }
    for name, report in check_all(sources, tmp_path).items():
        assert report["ok"], (name, report)


@pytest.mark.parametrize("strategy", [*STRATEGIES, "auto"])
@pytest.mark.parametrize("op", POSITIONED, ids=lambda op: op.title)
def test_accelerators_know_no_positions(op: NamedOp, strategy: str):
    before = parse_module(op.text(op.odd))
    fuse = f"decompose,fuse{{strategy={strategy}}}"
    with pytest.raises(PassFailedException, match="masks and scans need a GPU"):
        run_passes(before, f"{hardware('edge.yaml')},{fuse}")
