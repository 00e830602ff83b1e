"""
Signal coalescing: one signal for several channels, instead of one for each.

Every program on a launch grid makes a tile of each result of its node. One signal after
the last store, for one set of flags, can cover all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.rewriter import Rewriter

from comet.dialects.dataflow import (
    ChannelOp,
    KernelOp,
    ProgramOp,
    SignalOp,
    program_value,
)
from comet.dialects.dataflow.signals import can_cover


@dataclass(frozen=True)
class Coalescing:
    """A signal, and earlier ones of its kernel that it can cover."""

    signal: SignalOp
    covered: tuple[SignalOp, ...]


def merge_signals(program: ProgramOp) -> None:
    """Let the last of several signals for the same blocks, in one kernel, cover all."""
    for kernel in program.kernels():
        for plan in list(plan_signals(kernel)):
            channels = [op.channel for op in plan.covered]
            one = SignalOp(plan.signal.channel, covered=channels)
            Rewriter.replace_op(plan.signal, one)
            for op in plan.covered:
                Rewriter.erase_op(op)


def plan_signals(kernel: KernelOp) -> Iterator[Coalescing]:
    """Yield the signals of a kernel that can become one."""
    left = [op for op in kernel.body.block.ops if isinstance(op, SignalOp)]
    while left:
        last = left.pop()
        covered = tuple(op for op in left if _covers(last, op))
        left = [op for op in left if op not in covered]
        if covered:
            yield Coalescing(last, covered)


def _covers(later: SignalOp, signal: SignalOp) -> bool:
    """Whether `later` can cover the channel of `signal`, block by block."""
    one, other = program_value(later.channel).owner, program_value(signal.channel).owner
    assert isinstance(one, ChannelOp)
    assert isinstance(other, ChannelOp)
    return one.blocks == other.blocks and can_cover(later, other.result)
