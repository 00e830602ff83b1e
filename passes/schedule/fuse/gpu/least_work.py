"""
What the ops of a kernel take at least, with any loops and tiles.

These are functions of the ops alone, before a tile tree is built. What is removed then
counts for nothing: ops that fold, the later ones of equal ops, and casts that are
undone where their results are not stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.kernel import additions_of
from comet.cost.from_ir.loop_bounds import position_of
from comet.cost.from_ir.vector_costs import loop_cost
from comet.cost.gpu.bounded import Bound, BoundedLoop
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import Blocks, LoopCost
from comet.cost.reals import Real
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FoldOp,
    IndexOp,
    MapKind,
    MapOp,
    ReduceOp,
    View,
)
from comet.dialects.compound.map import constant_of, neutral_operand
from comet.dialects.schedule.masked_loops import COMPARED, FIRST
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.schedule.fuse.gpu.groups import Group, Values
from comet.passes.schedule.fuse.gpu.narrow import UNROUNDED
from comet.passes.schedule.tile_tree import chunks_of, resolve

ADDS = (MapKind.ADD, MapKind.SUB)


def vector_ops(group: Group, outs: Values) -> Iterator[MapOp | ReduceOp | CastOp]:
    """Yield the ops that vector lanes compute at least once for each element."""
    needed, chunks = defining_ops(outs, set(group)), chunks_of(group)
    same, uncertain = dict[SSAValue, SSAValue](), set[SSAValue]()
    first: dict[Hashable, Operation] = {}
    for op in _with_steps(op for op in group if op in needed):
        read = [resolve(value, chunks) for value in op.operands]
        key = op.name, *(same.get(v, v) for v in read), *op.properties.values()
        if (equal := first.setdefault(key, op)) is not op:
            same |= zip(op.results, equal.results, strict=True)
        elif not uncertain.isdisjoint(read) or _folds(op):
            uncertain.update(op.results)
        elif isinstance(op, MapOp | ReduceOp | CastOp) and not _is_undone(op):
            yield op


def least_in_loop(op: Operation, gpu: Device) -> LoopCost:
    """
    Return what an op costs at least per element in a loop of products.

    One that may be part of an addition or of a contraction there costs nothing: which
    of its users the kernel has is not asked.
    """
    cost = additions_of(op, gpu)
    if _may_be_free(op):
        return LoopCost(0.0)
    return loop_cost(op, cost, gpu) or LoopCost(cost)


def _may_be_free(op: Operation) -> bool:
    if not isinstance(op, MapOp):
        return False
    if op.kind.data is MapKind.MULT:
        users = (use.operation for use in op.result.uses)
        return any(isinstance(user, MapOp) and user.kind.data in ADDS for user in users)
    return op.kind.data in ADDS and any(
        isinstance(value.owner, ContractOp) for value in op.operands
    )


def _with_steps(ops: Iterator[Operation]) -> Iterator[Operation]:
    """Yield ops; before a fold, those of its step."""
    for op in ops:
        if isinstance(op, FoldOp):
            yield from tuple(op.step.block.ops)[:-1]
        yield op


def _is_undone(op: Operation) -> bool:
    """Return whether a cast, or the one before it, may be undone; see `unround`."""
    if not isinstance(op, CastOp):
        return False
    before = op.input.owner
    return UNROUNDED in op.attributes or (
        isinstance(before, CastOp) and UNROUNDED in before.attributes
    )


def _folds(op: Operation) -> bool:
    """Return whether an op is a constant, or equals one of its operands."""
    if not isinstance(op, MapOp | CastOp):
        return False
    numbers = [constant_of(value) for value in op.operands]
    if None not in numbers:
        return True
    return isinstance(op, MapOp) and (
        neutral_operand(op) is not None
        or (op.kind.data is MapKind.SELECT and numbers[0] is not None)
    )


def least_part(
    group: Group, dim: str, extents: Mapping[str, int], blocks: Blocks, gpu: Device
) -> Real:
    """
    Return the least part of the positions along `dim` that a loop over it visits.

    It is the mean over all programs, which have `blocks` of the grid. A mask ends a
    loop only where indices along it are compared, see `schedule.masked_loops`: with the
    rows of a program, or with lengths, which the kernel reads. Where masks bound the
    end and the start, what is left of both parts is at least their sum less all
    positions. 0 if they are read in another way.
    """
    parts: list[Real] = [1.0, 1.0]
    for op in group:
        for side, value in enumerate(op.operands):
            if isinstance(value.owner, IndexOp) and value.owner.dim == dim:
                other = _compared_with(op, side)
                if other is None or _is_unclear(other, group):
                    return 0.0
                parts[side] = np.minimum(parts[side], gpu.mean_length)
                if (bound := position_of(other)) is not None:
                    bound = replace(bound, since=side != FIRST)
                    run = _run(bound, dim, extents, blocks)
                    parts[side] = np.minimum(parts[side], run)
    begin, end = parts
    left = np.minimum(begin, end) - (1 - np.maximum(begin, end))
    return np.maximum(left, 0.0)


def _compared_with(op: Operation, side: int) -> SSAValue | None:
    """Return what an op compares with positions, its operand `side`, if it does."""
    compares = isinstance(op, MapOp) and op.kind.data in COMPARED
    other = op.operands[1 - side] if compares else None
    return None if other is None or isinstance(other.owner, View) else other


def _is_unclear(value: SSAValue, group: Group) -> bool:
    """Return whether `group` computes a value from indices, but not `position_of`."""
    if position_of(value) is not None:
        return False
    ops = defining_ops((value,), set(group))
    read = (operand.owner for op in ops for operand in op.operands)
    return any(isinstance(owner, IndexOp | View) for owner in read)


def _run(bound: Bound, dim: str, extents: Mapping[str, int], blocks: Blocks) -> Real:
    """
    Return the part of positions that programs run if all blocks along a loop are 1.

    With larger ones it is more; and so it is with larger blocks of rows, if all rows
    are in blocks of one size.
    """
    if bound.rows not in extents:
        return 1.0
    if bound.since and bound.rows not in blocks:
        return 0.0
    rows, extent = extents[bound.rows], extents[dim]
    loop = BoundedLoop(rows, extent, bound.offset, bound.since)
    return loop.trips(blocks.get(bound.rows, 1.0), 1.0).mean / extent
