"""Whether a wait is in the loop over sources or before it: numbers, arrays, prices."""

import numpy as np
import pytest
from gpu_ranks import H200X8
from semantics import parse_module, run_passes
from sync_programs import PUSHED
from xdsl.ir import SSAValue

from comet.cost.gpu.waiting import waits_in_loop
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.dialects.dataflow.rank_loops import SourceLoop, source_loops
from comet.dialects.schedule import SpatialOp, TemporalOp

ROWS = "[K = 2, K = 1]"
WHOLE = (
    PUSHED.replace(' sources ["K"]', "")
    .replace(ROWS, "[K = 1]")
    .replace("^bb0(%k: !T)", "^bb0(%k: tensor<2x16xf32, #compound.dims<M, K @REG>>)")
    .replace(
        "reduce add %k : !T",
        "reduce add %k : tensor<2x16xf32, #compound.dims<M, K @REG>>",
    )
)
"""All that was gathered is one tile: there is no loop over it."""
SEVERAL = (
    PUSHED.replace(ROWS, "[K = 2, K = 2]")
    .replace("%k: !T", "%k: !T2")
    .replace("%k : !T", "%k : !T2")
)
"""Each rank has sent two tiles."""


def test_one_tile_of_each_source_is_waited_for_before_the_loop():
    assert not waits_in_loop([])
    assert not waits_in_loop([1, 1])


def test_several_tiles_of_a_source_are_waited_for_in_the_loop():
    assert waits_in_loop([1, 2])


def test_arrays_answer_for_many_loops_at_once():
    inside = waits_in_loop([np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0, 3.0])])
    assert np.array_equal(inside, [False, True, True])


def loops(text: str, dim: str) -> list[SourceLoop]:
    """Return the loops over what two ranks sent, in a program that adds it up."""
    nodes = (op for op in parse_module(text).walk() if isinstance(op, SpatialOp))
    *_, last = nodes
    view: SSAValue = last.tiles[0]
    return list(source_loops(view, dim, 2))


@pytest.mark.parametrize(("text", "inside"), [(PUSHED, (1,)), (SEVERAL, (2,))])
def test_the_loop_over_sources_knows_the_loops_inside(
    text: str, inside: tuple[int, ...]
):
    (loop,) = loops(text, "K")
    assert isinstance(loop.node, TemporalOp)
    assert loop.depth == 0
    assert loop.trips_inside == inside


def test_a_loop_over_anything_else_is_none():
    assert not loops(PUSHED, "M")
    assert not loops(WHOLE, "K")


@pytest.mark.parametrize("text", [PUSHED, WHOLE], ids=["shares", "whole"])
def test_programs_are_priced_with_and_without_such_a_loop(text: str):
    module = run_passes(parse_module(text), f"{H200X8},annotate-cost")
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert estimate_of(program) is not None
