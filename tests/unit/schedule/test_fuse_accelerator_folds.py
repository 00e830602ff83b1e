"""Folds on accelerators: their loops, and what becomes of them in the files."""

import pytest
from accelerators import attached
from comet_rules import check
from covering import EVERY_CASE, exhaustive, fraction, one_of
from named_ops import NAMED_OPS, NamedOp
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import only_function, ops_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.cost.from_ir.capacity import Sizes, demands
from comet.dialects.arch import attached_system
from comet.dialects.comet import DeclareOp, TileOp
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import level_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.iter_args import in_place
from comet.passes.analysis.levels import compute_block
from comet.passes.schedule.tile.accelerator import search
from comet.passes.schedule.tile.template import make_template

STRATEGIES = ("none", "partial", "full")
FOLDED = [op for op in NAMED_OPS if op.title in ("attention", "gemm_softmax")]
ATTENTION = next(op for op in NAMED_OPS if op.title == "attention")
HEADS = {"B": 2, "H": 4, "M": 64, "N": 48, "D": 16, "E": 32}
"""Two batch entries of four heads; M divides by 16 cores, and N by them does not."""
QUARTERS = "y_dram: B=2 H=4; m_n: N=4"
CHUNKS = ("shared", "root")
WAYS = [(s, c) for s in STRATEGIES for c in CHUNKS if (s, c) != ("none", "root")]
each_way = pytest.mark.parametrize(("strategy", "chunks"), WAYS)


def spmd(dim: str, machine: int = 16) -> str:
    """Return the passes down to the SPMD level, with folds and `dim` over all cores."""
    return (
        f"{attached(machine)},decompose{{accumulator=input}},stream,"
        f"distribute{{dim={dim} axes=cx,cy,kx,ky}},insert-collectives,place-collectives"
    )


def flash(
    strategy: str = "full", factors: str = "", chunks: str = "shared"
) -> ModuleOp:
    """Return attention of HEADS as a tile tree, with factors if there are any."""
    tile = f',tile{{factors="{factors}"}}' if factors else ""
    fuse = f"fuse{{strategy={strategy} chunks={chunks}}}"
    pipeline = f"{spmd('M')},{fuse}{tile}"
    return run_passes(parse_module(ATTENTION.text(HEADS)), pipeline)


def loop_of(module: ModuleOp) -> TemporalOp:
    """Return the one node with iter_args."""
    (loop,) = (node for node in ops_of(module, TemporalOp) if node.iter_args)
    return loop


@one_of(4)
@pytest.mark.parametrize(
    ("op", "dim", "strategy", "chunks"),
    [
        (*sharded, *way)
        for sharded, way in fraction(
            [(op, dim) for op in FOLDED for dim in op.odd if dim != "N"], WAYS
        )
    ],
    ids=lambda part: getattr(part, "title", part),
)
def test_the_loop_means_the_same(op: NamedOp, dim: str, strategy: str, chunks: str):
    before = parse_module(op.text(op.odd))
    pipeline = f"{spmd(dim)},fuse{{strategy={strategy} chunks={chunks}}}"
    if (dim, chunks) == ("E", "root"):
        with pytest.raises(PassFailedException, match="do not stay in the cores"):
            run_passes(before, pipeline)
    else:
        assert_same_meaning(before, run_passes(before, pipeline), "main")


@one_of(2)
@pytest.mark.parametrize(("strategy", "chunks"), WAYS)
def test_products_in_the_loop_cast_what_others_read_too(strategy: str, chunks: str):
    """The sum reads the exponentials in f32, and the product in 16 bits."""
    before = parse_module(ATTENTION.text(ATTENTION.odd))
    passes = spmd("M").replace("accumulator=input", "accumulator=f32")
    after = run_passes(before, f"{passes},fuse{{strategy={strategy} chunks={chunks}}}")
    assert_same_meaning(before, after, "main")


@one_of(2)
@pytest.mark.parametrize(
    "factors",
    ["m_n: N=4", "y_dram: B=2 H=4; m_n: N=16", "y_dram: H=4 M=2; ev_ob: B=2"],
)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_chunks_mean_the_same(factors: str, chunks: str):
    before = parse_module(ATTENTION.text(HEADS))
    assert_same_meaning(before, flash(factors=factors, chunks=chunks), "main")


@one_of(2)
@pytest.mark.parametrize(
    ("strategy", "chunks"),
    WAYS if EVERY_CASE else [("partial", "root"), ("full", "shared")],
)
def test_chosen_chunks_mean_the_same(strategy: str, chunks: str):
    before = parse_module(ATTENTION.text(HEADS))
    after = run_passes(flash(strategy, chunks=chunks), "tile,bind")
    assert_same_meaning(before, after, "main")
    lowered = run_passes(after, "annotate-cost,lower-to-comet")
    assert check(write_files(lowered)) == []


def test_the_loop_makes_its_chunks_and_keeps_its_carries_in_the_cores():
    loop = loop_of(flash())
    products = [op for op in loop.walk() if isinstance(op, ContractOp)]
    assert len(products) == 2
    assert [row.dim for row in loop.loops] == ["N"]
    assert {level_of(value) for value in (*loop.iter_args, *loop.outs)} == {"OB"}
    assert [level_of(value) for value in loop.ins] == ["GB"] * 3


def test_chunks_come_from_the_root_while_carries_stay_in_the_cores():
    loop = loop_of(flash(chunks="root"))
    assert not isinstance(loop.parent_op(), SpatialOp)
    assert {level_of(value) for value in (*loop.iter_args, *loop.outs)} == {"OB"}
    assert [level_of(value) for value in loop.ins] == ["DRAM"] * 3


@exhaustive
def test_the_place_of_the_loop_is_chosen_by_cost():
    pipeline = f"{spmd('M')},fuse{{strategy=full chunks=auto}}"
    tree = run_passes(parse_module(ATTENTION.text(HEADS)), pipeline)
    trees = {place: flash(chunks=place) for place in CHUNKS}
    best = trees[min(CHUNKS, key=lambda place: latency(trees[place]))]
    chosen, cheapest = only_function(tree).body, only_function(best).body
    assert chosen.is_structurally_equivalent(cheapest)
    assert not trees["root"].is_structurally_equivalent(trees["shared"])


def latency(tree: ModuleOp) -> float:
    """Return the latency of the best factors that the search finds."""
    template = make_template(only_function(tree), attached_system(tree))
    return search(template).estimate.latency


def test_unfused_folds_read_scores_from_the_root():
    module = flash("none")
    products = [op for op in loop_of(module).walk() if isinstance(op, ContractOp)]
    assert len(products) == 1
    func = only_function(module)
    nests = [op for op in func.body.block.ops if isinstance(op, TemporalOp)]
    assert len(nests) == 4


def test_the_maximum_alone_needs_room_for_old_and_new():
    assert in_place(loop_of(flash())) == (False, True, True)


def test_what_a_loop_repeats_is_not_made_in_place():
    again = flash(
        factors="y_dram: B=2 H=4; m_n: N=4; m_gb: E=2; y_gb: E=2", chunks="root"
    )
    assert in_place(loop_of(again)) == (False, False, True)
    assert_same_meaning(parse_module(ATTENTION.text(HEADS)), again, "main")


def test_carries_take_the_room_of_one_core():
    module = flash(factors="y_dram: B=2 H=4; m_n: N=48")
    system = attached_system(module)
    peak = max(
        int(demand.total)
        for demand in demands(compute_block(only_function(module)), Sizes())
        if demand.level == "OB"
    )
    assert system.level("OB").capacity is not None
    rows, width = HEADS["M"] // 16, 2
    iter_args = width * rows * (2 + 1 + HEADS["E"])
    inside = width * rows * (3 + 2 * HEADS["E"])
    assert iter_args < peak <= iter_args + inside


def test_the_files_name_what_is_turned_over_in_place_once():
    lowered = run_passes(flash(factors=QUARTERS), "bind,lower-to-comet")
    ops = [op for op in lowered.walk() if isinstance(op, DeclareOp)]
    declared = {op.operation.data: op for op in ops}
    reads = {name: [t.data for t in op.ins] for name, op in declared.items()}
    assert reads["MAX"] == ["mold", "top"]
    assert declared["MAX"].out.data == "m"
    assert reads["MULT2"] == ["l", "scale"]
    assert declared["ADD"].out.data == "l"
    assert declared["ADD2"].out.data == "o"


def test_no_product_adds_up_over_the_chunks():
    lowered = run_passes(flash(factors=QUARTERS), "bind,lower-to-comet")
    entries = [e for t in lowered.walk() if isinstance(t, TileOp) for e in t.entries]
    assert not any(entry.rmw for entry in entries)
    inner = "y_dram: B=2 H=4; m_n: N=2; products_ob: N=2 M=2; ev_ob: N=2 M=2"
    summed = run_passes(flash(factors=inner), "bind,lower-to-comet")
    entries = [e for t in summed.walk() if isinstance(t, TileOp) for e in t.entries]
    assert {e.tensor for e in entries if e.rmw} == {"ev"}


def test_the_search_cuts_the_keys_where_rows_do_not_fit():
    """4096 scores of 16 bits for 16 rows fill the 128 KiB of a core's output buffer."""
    extents = {"B": 1, "H": 1, "M": 256, "N": 4096, "D": 32, "E": 32}
    before = parse_module(ATTENTION.text(extents))
    tree = run_passes(before, f"{spmd('M')},fuse{{strategy=full}}")
    template = make_template(only_function(tree), attached_system(tree))
    assert template.loops["fold", None] == ("N",)
    assert dict(search(template).plan["fold", None])["N"] > 1


def test_rows_of_the_loop_are_those_of_its_fold():
    with pytest.raises(PassFailedException, match="unknown dimension M"):
        flash(factors="m_n: M=2")


@pytest.mark.parametrize("strategy", [*STRATEGIES, "auto"])
def test_rejects_a_fold_over_a_spread_dimension(strategy: str):
    before = parse_module(ATTENTION.text(HEADS))
    with pytest.raises(PassFailedException, match="over N is spread over cx, cy"):
        run_passes(before, f"{spmd('N')},fuse{{strategy={strategy}}}")


def test_rejects_a_fold_that_goes_on_from_a_value():
    text = """
!D = tensor<4x8xf16, #compound.dims<M, N>>
!S = tensor<4xf16, #compound.dims<M>>
func.func @main(%a : !D, %z : !S) -> !S {
  %h = compound.fold over "N" ins(%a : !D) init(%z : !S) step {
  ^bb0(%chunk : !D, %old : !S):
    %top = compound.reduce max %chunk : !D -> !S
    %new = compound.map max %old, %top : !S, !S -> !S
    compound.yield %new : !S
  } merge {
  ^bb1(%x : !S, %y : !S):
    %new = compound.map max %x, %y : !S, !S -> !S
    compound.yield %new : !S
  } -> !S
  func.return %h : !S
}
"""
    with pytest.raises(PassFailedException, match="starts from no constant"):
        run_passes(parse_module(text), f"{attached(16)},fuse")


def test_rejects_carries_that_would_cross_the_root():
    with pytest.raises(PassFailedException, match="over N do not stay in the cores"):
        flash("none", chunks="root")
