"""Which iter_args of a loop can be updated in place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from xdsl.ir import Operation, OpResult, SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp, nodes_around


def in_place(node: NodeOp) -> tuple[bool, ...]:
    """
    Return, for every iter_arg of `node`, whether it can be updated in place.

    It can if the body has read the old value for the last time before it computes the
    new one, and if no inner loop repeats that computation. Otherwise both values are
    alive at the same time, and need two buffers.
    """
    position = {op: index for index, op in enumerate(node.body.walk())}
    iter_args = node.region_iter_args
    found: list[bool] = []
    folded = (node.yielded[result.index] for result in folds(node))
    for iter_arg, value in zip(iter_args, folded, strict=True):
        producer = _defining_op(value)
        last = max((position[op] for op in _readers(iter_arg)), default=-1)
        found.append(
            producer is not None
            and last < position[producer]
            and not _repeats(producer, node, value)
        )
    return tuple(found)


def folds(node: NodeOp) -> tuple[OpResult, ...]:
    """Return the `fold` results of `node`, one for each iter_arg."""
    pairs = zip(node.results, node.combiners, strict=True)
    return tuple(result for result, kind in pairs if kind is Combiner.FOLD)


def _repeats(op: Operation, node: NodeOp, value: SSAValue) -> bool:
    """Return whether a loop inside `node` repeats `op` for the same tile of `value`."""
    loops = takewhile(lambda above: above is not node, nodes_around(op))
    return any(
        loop.factor > 1 and loop.dim not in names_of(value)
        for above in loops
        if isinstance(above, TemporalOp)
        for loop in above.loops
    )


def _defining_op(value: SSAValue) -> Operation | None:
    """Return the op inside nodes that computes `value`, None for an argument."""
    while isinstance(value, OpResult) and isinstance(node := value.owner, NodeOp):
        value = node.yielded[value.index]
    return value.owner if isinstance(value.owner, Operation) else None


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, also inside nodes."""
    for use in value.uses:
        if isinstance(node := use.operation, NodeOp):
            yield from _readers(node.body.block.args[use.index])
        else:
            yield use.operation
