"""
How many signals each flag gets from the programs of a launch, for `verify-sync`.

The signals are counted tile by tile, while `lower-channels` computes them from the
factors of blocks and grid: so each of the two would find an error of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.dataflow import FlagsOp
from comet.dialects.dataflow.signals import node_of
from comet.dialects.schedule.slices import Cut
from comet.passes.dataflow.verify_sync.wiring import Producer, Wiring


def signals_of_blocks(
    wiring: Wiring, producer: Producer, flags: FlagsOp
) -> frozenset[int]:
    """
    Return the different numbers of signals that flags get in a launch.

    The programs of a group all signal to one flag where they share a memory; otherwise
    its root signals for all of them.
    """
    if wiring.receive_buffer.in_one_memory:
        return frozenset({wiring.receive_buffer.ranks})
    if wiring.in_group:
        return frozenset({1})
    node = node_of(producer)
    assert node is not None
    message = extents_of(producer.channel_type.message)
    factors = {loop.dim: loop.factor for loop in flags.type.blocks}
    signals = frozenset({1})
    for dim in node.factors:
        cuts = [cut for cut in node.cuts() if cut.dim == dim]
        if dim == producer.channel_type.split:
            cuts = cuts[1:]  # The first loop over it visits the receivers.
        counts = _starts_in_blocks(cuts, message.get(dim, 1), factors.get(dim, 1))
        signals = frozenset(a * b for a, b in product(signals, counts))
    return signals


def _starts_in_blocks(cuts: Sequence[Cut], extent: int, blocks: int) -> frozenset[int]:
    """
    Return how many of the tiles of a dimension begin in each of its blocks.

    If there is one block, all programs signal, also those whose tile is beyond the end.
    If there are several, programs whose tile is in none of them do not signal.
    """
    offsets = [range(0, cut.factor * cut.tile, cut.tile) for cut in cuts]
    starts = [sum(parts) for parts in product(*offsets)]
    if blocks == 1:
        return frozenset({len(starts)})
    size = ceil_div(extent, blocks)
    begun = Counter(start // size for start in starts)
    return frozenset(begun[block] for block in range(blocks))
