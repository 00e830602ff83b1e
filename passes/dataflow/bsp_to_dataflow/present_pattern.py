"""
The pattern of a program that already has channels, which stay.

It was written at the dataflow level, or `bsp-to-dataflow` has run before.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import (
    ChannelOp,
    KernelOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    ReceiveBufferOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.channel import ChannelMode
from comet.dialects.dataflow.signals import blocks_of
from comet.dialects.schedule import YieldOp
from comet.passes.dataflow.bsp_to_dataflow.plan import Pattern
from comet.passes.dataflow.verify_sync.wiring import ChannelUse, uses_of_channels


def check_present_pattern(function: FuncOp, program: ProgramOp, pattern: str) -> None:
    """Raise `PassFailedException` if channels follow another pattern than `pattern`."""
    found = [_patterns(channel, uses) for channel, uses in _channels(program)]
    if not found or pattern == "auto":
        return
    common = [kind for kind in Pattern if all(kind in patterns for patterns in found)]
    if pattern not in common:
        names = [*common, "auto"]
        raise PassFailedException(
            f"bsp-to-dataflow: pattern={pattern} does not apply to "
            f"@{function.sym_name.data}: it already has channels, with another "
            f"pattern; {' and '.join(names)} appl{'ies' if len(names) == 1 else 'y'}"
        )


def _channels(
    program: ProgramOp,
) -> list[tuple[ChannelOp | ReceiveBufferOp, Sequence[ChannelUse]]]:
    """
    Return the channels and receive buffers of a program, with their uses in kernels.
    """
    uses = list(uses_of_channels(program))
    return [
        (op, [use for use in uses if program_value(use.channel) is op.result])
        for op in program.body.block.ops
        if isinstance(op, ChannelOp | ReceiveBufferOp)
    ]


def _patterns(
    channel: ChannelOp | ReceiveBufferOp, uses: Sequence[ChannelUse]
) -> set[Pattern]:
    """Return the patterns that make such a channel."""
    if channel.type.mode is ChannelMode.PULL:
        return {Pattern.PULL}
    if not any(isinstance(op, WaitOp) for op in uses):
        return {Pattern.BSP}
    producers = [op for op in uses if isinstance(op, PushOp | StageOp)]
    if not all(_only_copies(op.parent_op()) for op in producers):
        return {Pattern.FUSED}
    return {Pattern.PUSH} if blocks_of(channel.result) else {Pattern.PUSH, Pattern.WAIT}


def _only_copies(kernel: object) -> bool:
    """Whether a kernel only copies its inputs."""
    assert isinstance(kernel, KernelOp)
    reads = any(isinstance(op, ReadOp | PullOp) for op in kernel.body.block.ops)
    inside = (op for node in kernel.nodes for op in node.body.block.ops)
    return not reads and all(isinstance(op, YieldOp) for op in inside)
