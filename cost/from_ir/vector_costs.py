"""
What elementwise ops cost in the loops of a GPU kernel, in additions per element.

That is what compiled loops of attention have, by Triton 3.6 for sm_90: a product
whose result is only added or subtracted is one instruction with that (FFMA), and the
addition of a contraction to an accumulator is none (Triton adds in the contraction).
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.cost.gpu.device import Units
from comet.cost.gpu.terms import LoopCost
from comet.dialects.compound import ContractOp, MapKind, MapOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule.accumulators import is_sum_of_products


def loop_cost(op: Operation, cost: float, units: Units) -> LoopCost | None:
    """
    Return the cost of an op in a loop of contractions, None if that is `cost`.

    Special function units raise 2 to a power; exp takes lanes for what it costs more.
    """
    if not isinstance(op, MapOp):
        return None
    name, costs = str(op.kind.data), units.function_costs
    if name in units.special_units:
        unit = costs["exp" if name == "exp2" else name]
        beside = costs["exp"] - costs["exp2"] if name == "exp" else 0.0
        return LoopCost(1 + max(beside, 0.0), unit)
    free = _is_contracted(op) or _is_accumulated(op)
    return LoopCost(0.0) if free else None


def _is_contracted(op: Operation) -> bool:
    """Whether a product is one instruction with the additions that read it."""
    return (
        isinstance(op, MapOp)
        and op.kind.data is MapKind.MULT
        and all(
            isinstance(use.operation, MapOp)
            and use.operation.kind.data in (MapKind.ADD, MapKind.SUB)
            and names_of(use.operation.result) == names_of(op.result)
            and not _is_accumulated(use.operation)
            for use in op.result.uses
        )
    )


def _is_accumulated(op: Operation) -> bool:
    """Whether an addition is that of contractions to an accumulator."""
    return (
        isinstance(op, MapOp)
        and op.kind.data is MapKind.ADD
        and (any(map(_is_added, op.operands)) or is_sum_of_products(op.result))
    )


def _is_added(value: SSAValue) -> bool:
    """Whether a value is a contraction that is only added."""
    return isinstance(value.owner, ContractOp) and value.has_one_use()
