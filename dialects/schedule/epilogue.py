"""
The epilogue of a kernel with products: what programs compute after their last loop.

It can be computed in subtiles, one after another, each a range of the columns of the
tile: registers then hold the accumulators and the other values of one subtile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.utils.bitwise_casts import is_power_of_two

from comet.dialects.blocks import terminator_of
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound import CastOp, ContractOp, FillOp, MapOp
from comet.dialects.compound.dims import extents_of, level_of, names_of
from comet.dialects.compound.gather import scatterings
from comet.dialects.schedule import SpatialOp, YieldOp
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.node import NodeOp


@dataclass(frozen=True)
class Epilogue:
    """The epilogue of a grid node, which subtiles divide along one dimension."""

    dim: str
    """The last dimension of the accumulators."""
    ops: tuple[Operation, ...]
    """The ops on tiles with the dimension, in order."""
    accumulators: tuple[SSAValue, ...]
    """The tiles with the dimension that are in registers before, which ops read."""
    loaded: tuple[SSAValue, ...]
    """The tiles with the dimension that are loaded for these ops."""
    whole: tuple[SSAValue, ...]
    """The other values that ops read, such as statistics of rows."""
    stored: tuple[SSAValue, ...]
    """The results that the node stores."""
    region: tuple[Operation, ...]
    """All ops after the last loop, the terminator included."""

    @property
    def end(self) -> Operation:
        """The terminator of the node's body."""
        return self.region[-1]


def epilogue_of(node: SpatialOp) -> Epilogue | None:
    """
    Return the epilogue of a kernel, None if subtiles cannot divide it.

    They can where all ops after the last loop are elementwise, loops have summed
    products before, and programs do not exchange.
    """
    if _exchanges(node):
        return None
    after = _after_loops(node)
    accumulator = next((v for op in after for v in op.operands if _is_summed(v)), None)
    if accumulator is None or any(scatterings(value) for value in node.outs):
        return None
    dim = names_of(accumulator)[-1]
    ops = tuple(op for op in after if dim in names_of(op.results[0]))
    return _divided(node, dim, ops, (*after, terminator_of(node.body.block)))


def undivided(node: SpatialOp, subtiles: int) -> str | None:
    """Return why `subtiles` cannot divide the epilogue of a kernel, or None."""
    if _exchanges(node):
        return "its programs exchange with others, and those of subtiles may not"
    if (epilogue := epilogue_of(node)) is None:
        return (
            "it has no epilogue that subtiles divide, elementwise ops on sums of "
            "products after all loops"
        )
    extent = extents_of(epilogue.accumulators[0])[epilogue.dim]
    if extent % subtiles or not is_power_of_two(extent):
        return (
            f"{subtiles} subtiles do not divide its tiles of {extent} of "
            f"{epilogue.dim}, which need a power of two"
        )
    return None


def _exchanges(node: SpatialOp) -> bool:
    """Whether programs exchange, with others of their group or other ranks."""
    inner = (op for op in node.body.walk() if isinstance(op, NodeOp))
    return rank_count(node) > 1 or any(op.on_mesh for op in inner)


def _after_loops(node: SpatialOp) -> Sequence[Operation]:
    """Return the ops after the last loop, none if one is not elementwise."""
    ops = list(node.body.block.ops)
    last = max((i for i, op in enumerate(ops) if isinstance(op, NodeOp)), default=None)
    after = [] if last is None else ops[last + 1 : -1]
    return after if all(isinstance(op, MapOp | CastOp | FillOp) for op in after) else []


def _is_summed(value: SSAValue) -> bool:
    """Whether a value is a matrix that a loop sums products into."""
    loop = value.owner
    return (
        isinstance(loop, NodeOp)
        and len(names_of(value)) > 1
        and any(isinstance(op, ContractOp) for op in loop.walk())
    )


def _divided(
    node: SpatialOp,
    dim: str,
    ops: tuple[Operation, ...],
    region: tuple[Operation, ...],
) -> Epilogue | None:
    """Return an epilogue divided along `dim`, None if that is not possible."""
    late, computed = late_loads(node), {op.results[0] for op in ops}
    read = dict.fromkeys(v for op in ops for v in op.operands if v not in computed)
    divided = [value for value in read if dim in names_of(value)]
    loaded = [v for v in divided if v in late and _is_read_by(v, ops)]
    held = [value for value in divided if value not in loaded]
    users = {use.operation for value in computed for use in value.uses}
    inside = all(op in ops or isinstance(op, YieldOp) for op in users)
    stored = [
        (value, result)
        for value, result in zip(node.yielded, node.outs, strict=True)
        if value in computed
    ]
    moved = all(level_of(value) != level_of(result) for value, result in stored)
    if not (inside and moved and all(names_of(v)[-1] == dim for v in held)):
        return None
    return Epilogue(
        dim,
        ops,
        tuple(held),
        tuple(loaded),
        tuple(value for value in read if value not in divided),
        tuple(dict.fromkeys(value for value, _ in stored)),
        region,
    )


def _is_read_by(value: SSAValue, ops: Sequence[Operation]) -> bool:
    """Whether only some ops read a value."""
    return all(use.operation in ops for use in value.uses)
