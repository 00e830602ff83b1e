"""
The analysis of tile trees: the verifier finds what would give wrong numbers.

Each mutation is shown both ways: the verifier rejects it, and with the verifier off
the interpreter computes something else, or cannot compute it.
"""

from functools import cache

import numpy as np
import pytest
from accelerators import attached
from gpu_graphs import H200
from programs import graph_text
from semantics import assert_same_meaning, parse_module, random_inputs, run_passes
from tile_trees import tiled
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.utils.exceptions import InterpretationError, VerifyException

from comet.dialects.collective import AllReduceOp, CollectiveOp
from comet.dialects.compound import ReduceKind, ReduceKindAttr
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.interpreter import run
from comet.passes.schedule.retile import set_loops

SIZES = (6, 4, 32)
LOOPS = {"DRAM": "M=3", "contract": "K=2", "map": "N=2", "reduce": "M=2"}


@cache
def tree(strategy: str = "full", at: str = "GB") -> ModuleOp:
    """Return gemm_softmax as a tile tree with factors, on 16 cores."""
    pipeline = (
        f"{attached(16)},decompose{{accumulator=input}},"
        "distribute{dim=N axes=cx,cy,kx,ky},insert-collectives,"
        f"place-collectives{{at={at}}},fuse{{strategy={strategy}}}"
    )
    text = graph_text("gemm_softmax", SIZES)
    return tiled(run_passes(parse_module(text), pipeline), **LOOPS)


def mutable(at: str = "GB") -> ModuleOp:
    return tree(at=at).clone()


def combining(module: ModuleOp, kind: type[NodeOp], combiner: Combiner) -> NodeOp:
    """Return the first node of a class that combines a result by `combiner`."""
    return next(
        op for op in module.walk() if isinstance(op, kind) and combiner in op.combiners
    )


def combine_by(node: NodeOp, *kinds: str) -> None:
    node.properties["combine"] = ArrayAttr(StringAttr(kind) for kind in kinds)


def assert_caught_twice(mutated: ModuleOp, message: str, at: str = "GB") -> None:
    """Check that the verifier rejects a module and the interpreter disagrees."""
    with pytest.raises(VerifyException, match=message):
        mutated.verify()
    inputs = random_inputs(tree(at=at), "main")
    (expected,) = run(tree(at=at), "main", inputs)
    try:
        (actual,) = run(mutated, "main", inputs)
    except InterpretationError:
        return
    assert not np.allclose(actual, expected, rtol=1e-6, equal_nan=False)


def test_the_tree_itself_is_right():
    for at in ("GB", "OB"):
        assert_same_meaning(
            parse_module(graph_text("gemm_softmax", SIZES)), tree(at=at), "main"
        )


def test_a_wrong_combiner_of_a_loop():
    module = mutable()
    node = combining(module, TemporalOp, Combiner.ADD)
    combine_by(node, "max")
    assert_caught_twice(module, "combines by max a result that needs add")


@pytest.mark.parametrize("wrong", ["max", "same", "root"])
def test_a_wrong_combiner_of_the_cores(wrong: str):
    module = mutable()
    node = combining(module, SpatialOp, Combiner.ADD)
    kinds = [wrong if c is Combiner.ADD else str(c) for c in node.combiners]
    combine_by(node, *kinds)
    assert_caught_twice(module, f"combines by {wrong} a result that needs add")


def test_a_forgotten_combiner():
    module = mutable()
    node = combining(module, SpatialOp, Combiner.MAX)
    combine_by(node, *("none" for _ in node.outs))
    assert_caught_twice(
        module, "does not have the looped dimension N and names no combiner"
    )


def test_a_combiner_where_nothing_is_combined():
    module = mutable()
    node = next(
        op
        for op in module.walk()
        if isinstance(op, TemporalOp) and op.factors and op.combine is None
    )
    combine_by(node, "add")
    with pytest.raises(VerifyException, match="there is nothing to combine by add"):
        module.verify()


def test_a_wrong_factor_of_a_loop():
    module = mutable()
    node = next(op for op in module.walk() if isinstance(op, TemporalOp) and op.factors)
    assert node.factors == {"M": 3}
    set_loops(node, [LoopAttr("M", 2)])
    assert_caught_twice(module, "factor 2 of M = 6 does not give tiles of 2")


def test_a_wrong_factor_of_the_cores():
    module = mutable()
    node = next(op for op in module.walk() if isinstance(op, SpatialOp))
    set_loops(node, [LoopAttr("N", 1, row.axis) for row in node.loops])
    assert_caught_twice(module, "factor 1 of N = 32 does not give tiles of 8")


def last_all_reduce(module: ModuleOp) -> AllReduceOp:
    """Return the sum of the exponentials; softmax forgives much in the maximum."""
    return [op for op in module.walk() if isinstance(op, AllReduceOp)][-1]


@pytest.mark.parametrize("at", ["GB", "OB"])
def test_a_removed_all_reduce(at: str):
    module = mutable(at)
    op = last_all_reduce(module)
    op.result.replace_all_uses_with(op.input)
    op.detach()
    op.erase()
    assert_caught_twice(module, r"partial\(add\)|needs add", at)


@pytest.mark.parametrize("at", ["GB", "OB"])
def test_a_swapped_reduction(at: str):
    module = mutable(at)
    op = last_all_reduce(module)
    op.properties["kind"] = ReduceKindAttr(ReduceKind.MAX)
    assert_caught_twice(module, "reduces by max .* partial", at)


def test_an_axis_that_is_missing():
    module = mutable()
    op = last_all_reduce(module)
    op.properties["axes"] = ArrayAttr([StringAttr("cx")])
    assert_caught_twice(module, r"partial\(add\) over axis 'cy'")


def test_an_axis_of_no_enclosing_node():
    module = mutable()
    op = last_all_reduce(module)
    op.properties["axes"] = ArrayAttr([StringAttr("cx"), StringAttr("kx")])
    with pytest.raises(VerifyException, match="'kx' is not one of an enclosing"):
        module.verify()


def test_another_root_needs_a_broadcast():
    text = graph_text("gemm_softmax", SIZES)
    pipeline = (
        f"{attached(16)},decompose{{accumulator=input}},"
        "distribute{dim=N axes=cx,cy},insert-collectives,"
        "place-collectives{at=GB kind=gather},fuse{strategy=full}"
    )
    module = run_passes(parse_module(text), pipeline)
    op = next(
        op
        for op in module.walk()
        if isinstance(op, CollectiveOp) and op.name == "collective.broadcast"
    )
    op.results[0].replace_all_uses_with(op.input)
    op.detach()
    op.erase()
    with pytest.raises(VerifyException, match="broadcast"):
        module.verify()


WEIGHTED = """
!x = tensor<16xf32, #compound.dims<M>>
!w = tensor<16x8xf32, #compound.dims<M, N>>
!o = tensor<8xf32, #compound.dims<N>>
!one = tensor<f32, #compound.dims<>>
!y = tensor<8x16xf32, #compound.dims<N, M>>
func.func @main(%x: !x, %w: !w) -> !y {
  %top = compound.reduce max %x : !x -> !one
  %below = compound.map sub %x, %top : !x, !one -> !x
  %e = compound.map exp %below : !x -> !x
  %l = compound.reduce add %e : !x -> !one
  %p = compound.map div %e, %l : !x, !one -> !x
  %o = compound.contract %p, %w : !x, !w -> !o
  %y = compound.map min %o, %p : !o, !x -> !y
  func.return %y : !y
}
"""
"""Streamed, the sum over M begins with a zero for each N that a scale multiplies."""


def test_what_is_the_same_along_a_dimension_may_be_cut_with_others():
    module = parse_module(WEIGHTED)
    start = f'{H200},stream,fuse{{strategy=full}},tile{{factors="y: N=2"}}'
    after = run_passes(module, start)
    assert_same_meaning(module, after, "main")
