"""Trees of kernels are built simplified, and it is cheap to see that they are."""

from functools import partial

import pytest
from covering import exhaustive
from gpu_graphs import GRAPHS, H200
from paths import ROOT
from semantics import parse_module, run_passes
from xdsl.dialects.func import FuncOp
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce

from comet.dialects import get_all_dialects
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import CastOp, MapOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu.groups import elementary_ops, partition_of
from comet.passes.schedule.fuse.gpu.plan import plan_kernel, plan_steps
from comet.passes.schedule.fuse.gpu.simplify import (
    is_distinct,
    is_folded,
    simplify,
)
from comet.passes.schedule.fuse.gpu.trial import standalone_function
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.retile import retile
from comet.passes.schedule.tile_tree import Spatial

TYPES = """
!t = tensor<4xf32, #compound.dims<M>>
!h = tensor<4xf16, #compound.dims<M>>
"""
BLOCKS = ("llama", "gpt2_backward")
STRATEGIES = (
    Strategy("none"),
    Strategy("full", full_rows=True),
    Strategy("partial"),
    Strategy("partial", spill=True),
)


def fully_simplified(func: FuncOp) -> str:
    """Return the text of a copy after all patterns, DCE and CSE."""
    copy = func.clone()
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(copy.body)
    cse(copy)
    return str(copy)


@pytest.mark.parametrize(
    ("body", "folded", "distinct"),
    [
        ("%y = compound.map exp %x : !t -> !t", True, True),
        (
            "%y = compound.map exp %x : !t -> !t %z = compound.map neg %x : !t -> !t",
            False,
            True,
        ),
        (
            "%a = compound.map exp %x : !t -> !t %b = compound.map exp %x : !t -> !t"
            " %y = compound.map add %a, %b : !t, !t -> !t",
            True,
            False,
        ),
        (
            "%a = compound.map exp %x : !t -> !t %b = compound.map neg %x : !t -> !t"
            " %y = compound.map add %a, %b : !t, !t -> !t",
            True,
            True,
        ),
        (
            "%a = compound.fill 0.0 : !t %y = compound.map add %x, %a : !t, !t -> !t",
            False,
            True,
        ),
        (
            "%a = compound.fill 2.0 : !t %y = compound.map add %x, %a : !t, !t -> !t",
            True,
            True,
        ),
        (
            "%a = compound.fill 2.0 : !h %b = compound.cast %a : !h -> !t"
            " %y = compound.map add %x, %b : !t, !t -> !t",
            False,
            True,
        ),
        (
            "%a = compound.map exp %x : !t -> !t %b = compound.map exp %x : !t -> !t"
            " %c = compound.map neg %b : !t -> !t"
            " %y = compound.map add %a, %b : !t, !t -> !t",
            False,
            False,
        ),
    ],
)
def test_a_function_is_left_if_nothing_simplifies_it(
    body: str, folded: bool, distinct: bool
):
    text = f"func.func @f(%x: !t) -> !t {{ {body} func.return %y : !t }}"
    (func,) = compute_functions(parse_module(TYPES + text))
    assert is_folded(func) is folded
    assert is_distinct(func.body.block) is distinct
    expected = fully_simplified(func)
    assert (expected == str(func)) is (folded and distinct)
    simplify(func)
    assert str(func) == expected
    assert is_folded(func)
    assert is_distinct(func.body.block)


def test_only_maps_and_casts_have_patterns():
    """`is_folded` asks only these."""
    ops = [op for make in get_all_dialects().values() for op in make().operations]
    found = {op for op in ops if issubclass(op, HasCanonicalizationPatternsInterface)}
    assert found == {MapOp, CastOp}


@exhaustive
def test_trees_of_kernels_are_built_with_their_types_and_combiners():
    """`retile` changes nothing in them, and what is simple stays as it is."""
    texts = [*GRAPHS.values()]
    texts += [(ROOT / f"samples/blocks/{name}.mlir").read_text() for name in BLOCKS]
    simple = 0
    for text in texts:
        module = run_passes(parse_module(text), f"{H200},sink-renames,stream")
        (func,) = compute_functions(module)
        simplify(func)
        levels, ops = gpu_levels(attached_system(module)), elementary_ops(func)
        for strategy in STRATEGIES:
            plan = partial(plan_kernel, strategy)
            for step in plan_steps(func, partition_of(ops, strategy), plan):
                if isinstance(step, Spatial) and step.loops:
                    kernel = standalone_function(step, levels)
                    before = str(kernel)
                    retile(kernel)
                    assert str(kernel) == before
                    assert is_folded(kernel)
                    assert is_distinct(kernel.body.block)
                    assert fully_simplified(kernel) == before
                    simple += 1
    assert simple > 40
