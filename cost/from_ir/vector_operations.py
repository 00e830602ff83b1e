"""The operations of a GPU kernel that are no products of matrix instructions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.products import sums_of_products
from comet.cost.from_ir.vector_costs import loop_cost
from comet.cost.gpu.device import Units
from comet.cost.gpu.terms import Term
from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import ContractOp, FillOp, MapOp, ReduceOp
from comet.dialects.compound.dims import iteration_dims
from comet.dialects.dataflow.transfer import PushOp, ReadTileOp, WaitOp
from comet.dialects.schedule.masked_loops import visible_conditions

FREE = (FillOp, CollectiveOp, PushOp, ReadTileOp, WaitOp)
"""Ops that compute nothing: constants, and moves between programs or ranks."""


def vector_operations(tree: Body, units: Units) -> Iterator[Term]:
    """Yield the operations of a tile tree, in additions."""
    conditions = set(_conditions(tree.walk()))
    for op, body in tree.ops():
        loops = body.loops
        if isinstance(op, ContractOp):
            yield from sums_of_products(op, loops)
        elif op.results and not isinstance(op, FREE):
            mask = loops[-1] if loops and _is_mask(op, conditions) else ""
            cost = additions_of(op, units)
            in_loop = loop_cost(op, cost, units)
            yield Term(iteration_dims(op), cost, loops, mask=mask, in_loop=in_loop)


def additions_of(op: Operation, units: Units) -> float:
    """Return the cost of an op per element, in additions; not for products."""
    name = str(op.kind.data) if isinstance(op, MapOp) else "reduce"
    has_cost = isinstance(op, MapOp | ReduceOp)
    return units.function_costs.get(name, 1) if has_cost else 1


def _conditions(bodies: Iterable[Body]) -> Iterator[SSAValue]:
    """Yield the conditions of masks, in loops that can be written as two."""
    for body in bodies:
        if body.loop is not None:
            yield from visible_conditions(body.loop)


def _is_mask(op: Operation, conditions: Collection[SSAValue]) -> bool:
    """Whether an op computes the condition of a mask, or selects by it."""
    return op.results[0] in conditions or (
        isinstance(op, MapOp) and op.inputs[0] in conditions
    )
