"""passes.waits: which loops over what peers give hold no other loop."""

import pytest
from gpu_ranks import H200X8
from semantics import parse_module, run_passes
from sync_programs import PUSHED

from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.loops import is_innermost

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


def test_the_loop_over_single_tiles_is_innermost() -> None:
    (node,) = (op for op in parse_module(PUSHED).walk() if isinstance(op, TemporalOp))
    assert is_innermost(node, "K")
    assert not is_innermost(node, "M")


def test_a_loop_over_tiles_of_each_source_is_not() -> None:
    text = PUSHED.replace(ROWS, "[K = 2, K = 2]")
    text = text.replace("%k: !T", "%k: !T2").replace("%k : !T", "%k : !T2")
    (node,) = (op for op in parse_module(text).walk() if isinstance(op, TemporalOp))
    assert not is_innermost(node, "K")


@pytest.mark.parametrize("text", [PUSHED, WHOLE], ids=["shares", "whole"])
def test_programs_are_priced_with_and_without_such_a_loop(text: str) -> None:
    module = run_passes(parse_module(text), f"{H200X8},annotate-cost")
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert estimate_of(program) is not None
