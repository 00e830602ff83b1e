"""
Which values one signal tells of: several that the same programs give, tile by tile.

Every program on a launch grid makes a tile of each result of its node. One signal
behind the last of them, for one set of flags, says that all are there.
"""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from comet.dialects.dataflow import ChannelOp, ProgramOp, SignalOp, behind
from comet.dialects.dataflow.signals import tells_of


def merge_signals(program: ProgramOp) -> None:
    """Leave of signals that tell of the same blocks, in one kernel, the last one."""
    for kernel in program.kernels():
        signals = [op for op in kernel.body.block.ops if isinstance(op, SignalOp)]
        for index, signal in enumerate(signals):
            if any(_tells_as_well(later, signal) for later in signals[index + 1 :]):
                Rewriter.erase_op(signal)


def _tells_as_well(later: SignalOp, signal: SignalOp) -> bool:
    """Whether `later` stands behind what `signal` tells of, and has the same blocks."""
    one, other = behind(later.channel).owner, behind(signal.channel).owner
    assert isinstance(one, ChannelOp)
    assert isinstance(other, ChannelOp)
    return one.blocks == other.blocks and tells_of(later, other.result)
