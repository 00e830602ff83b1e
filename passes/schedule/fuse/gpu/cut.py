"""Where to cut a GPU kernel in two: where that moves the fewest bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import FillOp
from comet.dialects.compound.dims import bytes_of
from comet.dialects.compound.gather import scatterings
from comet.passes.schedule.fuse.gpu.groups import Partition
from comet.passes.schedule.fuse.gpu.scatters import scatters_of
from comet.passes.schedule.tile_tree import Spatial


def cut_in_two(partition: Partition, kernel: Spatial) -> Partition | None:
    """
    Return `partition` with two kernels in the place of one, None if it has one op.

    The cut is where the two kernels move the fewest bytes; of equal cuts, the one with
    the most even halves.
    """
    whole = next((group for group in partition if kernel.outs[0].owner in group), ())
    ops = {*kernel.ops, *chain.from_iterable(map(scatterings, kernel.outs))}
    halved = [op for op in whole if op in ops]
    added = added_bytes(halved, kernel.outs)
    sizes = [n for n in range(1, len(halved)) if halved[n] not in scatters_of(whole)]
    if not sizes:
        return None
    best = min(sizes, key=lambda size: (added[size], abs(2 * size - len(halved))))
    index = partition.index(whole)
    halves = tuple(halved[:best]), tuple(halved[best:])
    return (*partition[:index], *halves, *partition[index + 1 :])


def added_bytes(ops: Sequence[Operation], outs: Sequence[SSAValue]) -> list[int]:
    """
    Return how many more bytes two kernels move than one, by the ops of the first one.

    A value that the second kernel reads from the first is loaded once more, and stored
    unless it is one of `outs`. An input of both kernels is loaded once more.
    """
    first, last = dict[SSAValue, int](), dict[SSAValue, int]()
    computed = set[SSAValue]()
    for position, op in enumerate(ops):
        for value in op.operands:
            if not isinstance(value.owner, FillOp):
                first.setdefault(value, position)
                last[value] = position
        first |= dict.fromkeys(op.results, position)
        computed.update(op.results)
    added = [0] * (len(ops) + 1)
    for value, end in last.items():
        moves = 2 if value in computed and value not in outs else 1
        for size in range(first[value] + 1, end + 1):
            added[size] += moves * bytes_of(value)
    return added
