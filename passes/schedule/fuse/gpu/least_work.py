"""
Lower bounds of the work of the ops of a kernel, for all choices of loops and tiles.

They depend only on the ops, as no tile tree has been built yet. Ops that simplification
may remove from the tree do not count: ops that fold, all but the first of equal ops,
and casts that are undone because nothing stores their results.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.loop_bounds import position_of
from comet.cost.gpu.bounded import Bound, BoundedLoop
from comet.cost.gpu.device import Device
from comet.cost.gpu.terms import Blocks
from comet.cost.reals import Real
from comet.dialects.compound import IndexOp, MapOp, View
from comet.dialects.schedule.masked_loops import COMPARED, FIRST
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.schedule.fuse.gpu.groups import Group
from comet.passes.schedule.fuse.gpu.op_facts import OpFacts, VectorOp


def vector_ops(
    ops: Sequence[OpFacts], needed: int, loops: Collection[str]
) -> Iterator[VectorOp]:
    """
    Yield the ops that vector lanes compute at least once for each element.

    `needed` is a mask of those of `ops` that are computed. A fold over a dimension that
    is not in `loops` has one step, which reads the initial values.
    """
    same, uncertain = dict[SSAValue, SSAValue](), set[SSAValue]()
    first: dict[Hashable, VectorOp] = {}
    for step in chain.from_iterable(op.steps for op in ops if op.bit & needed):
        key = step.kind, *(same.get(value, value) for value in step.reads)
        if (equal := first.setdefault(key, step)) is not step:
            same |= zip(step.results, equal.results, strict=True)
        elif (
            step.is_trivial
            or (step.starts and step.starts not in loops)
            or not uncertain.isdisjoint(step.reads)
        ):
            uncertain.update(step.results)
        elif step.counts:
            yield step


def least_fraction(
    group: Group, dim: str, extents: Mapping[str, int], blocks: Blocks, gpu: Device
) -> Real:
    """
    Return the least fraction of the positions along `dim` that a loop over it visits.

    The mean over all programs, which have `blocks` of the grid. A mask bounds a loop
    only if it compares the positions along the loop (`schedule.masked_loops`) with rows
    of the program, or with lengths that the kernel reads. If masks bound both start and
    end of the loop, the fraction is at least the sum of both fractions minus 1. It is 0
    if the positions are read in any other way.
    """
    fractions: list[Real] = [1.0, 1.0]
    for op in group:
        for side, value in enumerate(op.operands):
            if isinstance(value.owner, IndexOp) and value.owner.dim == dim:
                other = _compared_with(op, side)
                if other is None or _is_unclear(other, group):
                    return 0.0
                fractions[side] = np.minimum(fractions[side], gpu.mean_length)
                if (bound := position_of(other)) is not None:
                    bound = replace(bound, since=side != FIRST)
                    run = _least_visited(bound, dim, extents, blocks)
                    fractions[side] = np.minimum(fractions[side], run)
    begin, end = fractions
    left = np.minimum(begin, end) - (1 - np.maximum(begin, end))
    return np.maximum(left, 0.0)


def _compared_with(op: Operation, side: int) -> SSAValue | None:
    """Return the value that an op compares with its operand `side`, else None."""
    compares = isinstance(op, MapOp) and op.kind.data in COMPARED
    other = op.operands[1 - side] if compares else None
    return None if other is None or isinstance(other.owner, View) else other


def _is_unclear(value: SSAValue, group: Group) -> bool:
    """Return whether a value depends on indices in a way `position_of` cannot read."""
    if position_of(value) is not None:
        return False
    ops = defining_ops((value,), set(group))
    read = (operand.owner for op in ops for operand in op.operands)
    return any(isinstance(owner, IndexOp | View) for owner in read)


def _least_visited(
    bound: Bound, dim: str, extents: Mapping[str, int], blocks: Blocks
) -> Real:
    """
    Return the fraction of positions that programs visit if a loop has blocks of 1.

    The fraction grows with the blocks of the loop, and with the blocks of rows, as long
    as all of these have one size.
    """
    if bound.rows not in extents:
        return 1.0
    if bound.since and bound.rows not in blocks:
        return 0.0
    rows, extent = extents[bound.rows], extents[dim]
    loop = BoundedLoop(rows, extent, bound.offset, bound.since)
    return loop.trips(blocks.get(bound.rows, 1.0), 1.0).mean / extent
