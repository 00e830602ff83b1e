"""
`use-ge`: elementary level -> the same, where masks compare positions by `ge`.

If a count x is greater than a position n, then n <= x - 1, the last visible position. A
comparison in this form bounds loops (`dialects/schedule/masked_loops.py`). The
difference x - 1 is computed once for the count, not for each position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import FillOp, IndexOp, MapKind, MapOp
from comet.dialects.compound.dims import INTEGER_TENSOR, element_type_of, tensor
from comet.dialects.compound.map import MapKindAttr
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class UseGePass(FunctionPass):
    """
    Compare whole numbers with positions by `ge`.

    Before: `map gt` of integers, one of which is a `compound.index`. After: `map ge` of
    x - 1 and the index, or of the index and x + 1. The least integer has none before
    it, and the largest none after: as counts they are the caller's to avoid.
    """

    name = "use-ge"

    LEVELS = (IRLevel.ELEMENTARY,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for plan in tuple(plan_comparisons(function)):
            compare(plan)


@dataclass(frozen=True)
class Comparison:
    """A comparison of a number with a position, and which operand is the number."""

    op: MapOp
    number: int

    @property
    def change(self) -> MapKind:
        """How the number becomes the last, or the first, visible position."""
        return MapKind.SUB if self.number == 0 else MapKind.ADD


def plan_comparisons(func: FuncOp) -> Iterator[Comparison]:
    """Yield the comparisons of `func` that `ge` can do."""
    for op in func.walk():
        if isinstance(op, MapOp) and op.kind.data is MapKind.GT:
            is_position = [isinstance(value.owner, IndexOp) for value in op.inputs]
            if any(is_position) and INTEGER_TENSOR.verifies(op.inputs[0].type):
                yield Comparison(op, 0 if is_position[1] else 1)


def compare(plan: Comparison) -> None:
    """Write a comparison by `ge`."""
    number = plan.op.inputs[plan.number]
    one = FillOp(1.0, tensor((), element_type_of(number)))
    visible = MapOp(plan.change, [number, one.result], number.type)
    visible.result.name_hint = _name(number, plan.change)
    Rewriter.insert_op((one, visible), InsertPoint.before(plan.op))
    plan.op.kind = MapKindAttr(MapKind.GE)
    plan.op.operands[plan.number] = visible.result


def _name(number: SSAValue, change: MapKind) -> str | None:
    """Return the name of the last, or the first, visible position of a number."""
    end = "last" if change is MapKind.SUB else "first"
    return None if number.name_hint is None else f"{number.name_hint}_{end}"
