"""One loop for all loops of a node, see `coalesce-loops`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from comet.dialects.schedule import TemporalOp
from comet.dialects.tl.types import BinaryKind
from comet.passes.triton.lower_to_triton.offsets import (
    DimSlice,
    Prologue,
    inner_slice,
    step_of,
)
from comet.passes.triton.lower_to_triton.values import Scope, literal
from comet.passes.triton.lower_to_triton.workarounds import end_at_run_time
from comet.passes.triton.slices import LoopSlice


def bounds_of_all(
    node: TemporalOp, loops: Sequence[LoopSlice], scope: Scope
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return the first iteration of one loop, the end, and the step."""
    count = prod(loop.factor for loop in loops)
    first, end, step = (scope.integer(number) for number in (0, count, 1))
    return first, end_at_run_time(scope, node, count, end), step


def slices_at(
    index: SSAValue,
    loops: Sequence[LoopSlice],
    slices: Mapping[str, DimSlice],
    home: Prologue,
) -> dict[str, DimSlice]:
    """
    Return the slice of each dimension in iteration `index`; the last loop is fastest.

    An iteration beyond the end of a shorter slice is masked.
    """
    found: dict[str, DimSlice] = {}
    for loop in reversed(loops):
        position = index
        if loop is not loops[0]:
            factor = home.integer(loop.factor)
            position = home.binary(BinaryKind.MOD, index, factor)
            index = home.binary(BinaryKind.FLOORDIV, index, factor)
        outer = slices[loop.dim]
        step = step_of(outer, loop, home)
        if literal(step) != 1:
            position = home.binary(BinaryKind.MUL, position, step)
        if outer.start is not None:
            position = home.binary(BinaryKind.ADD, outer.start, position)
        position.name_hint = loop.dim.lower()
        shape = outer.shape.by_number(loop)
        found[loop.dim] = inner_slice(outer, loop, shape, position, home)
    return found
