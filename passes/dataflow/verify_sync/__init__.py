"""
`verify-sync`: proves that ranks which run at different speeds compute what the program
says.

Needs lowered channels; changes nothing. Every rank runs the kernels of a program in
order, launch after launch, at its own speed. It proves, for every receive buffer: what
is read has arrived, every wait ends, and no rank overwrites what another still reads. A
load follows a wait if it loads what the wait returns; if waits are still at the borders
of kernels, `place-waits` runs on a copy. Rejects a program without such a proof, with
the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue
from xdsl.passes import ModulePass

from comet.dialects.dataflow import (
    ChannelOp,
    FlagsOp,
    KernelOp,
    ProgramOp,
    ReceiveBufferOp,
    SignalOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.persistence import unfit_for_tiles
from comet.dialects.dataflow.program import programs_in
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.dataflow.kernel_locals import is_signalled, node_result
from comet.passes.dataflow.place_waits import has_borders, place_in_nodes
from comet.passes.dataflow.verify_sync.arrivals import arrival
from comet.passes.dataflow.verify_sync.groups import coresidency
from comet.passes.dataflow.verify_sync.rules import RULES
from comet.passes.dataflow.verify_sync.wiring import (
    ChannelUse,
    Wiring,
    flags_of,
    kernel_of,
    loads_before,
    shown,
    uses_of_channels,
    wiring_of,
)


@dataclass(frozen=True)
class VerifySyncPass(ModulePass):
    """Reject programs whose ranks race or wait for ever."""

    name = "verify-sync"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Verify every program of a function that is no reference."""
        functions = functions_at(op, self.name, IRLevel.DATAFLOW, copies=True)
        if any(map(has_borders, functions)):
            copied = op.clone()
            functions = functions_at(copied, self.name, IRLevel.DATAFLOW, copies=True)
            for function in functions:
                place_in_nodes(function)
        for function in functions:
            for program in programs_in(function):
                verify(program)


def verify(program: ProgramOp) -> None:
    """Raise `PassFailedException` with the first reason to reject a program."""
    for op in uses_of_channels(program):
        check_memory(op, program)
    for op in program.body.block.ops:
        if isinstance(op, ReceiveBufferOp):
            check(wiring_of(op, program))
    for op in program.kernels():
        check_kernel(op)


def check_memory(op: ChannelUse, program: ProgramOp) -> None:
    """
    Raise `PassFailedException` unless a kernel uses a receive buffer of the program.
    """
    buffer = program_value(op.channel)
    if isinstance(buffer.owner, ChannelOp):
        reason = f"{shown(buffer)} is a channel still; run lower-channels first"
    elif (
        isinstance(buffer.owner, ReceiveBufferOp)
        and buffer.owner.parent is program.body.block
    ):
        return
    else:
        reason = (
            f"{kernel_of(op)} uses {shown(buffer)}, which is no receive buffer of its "
            "program: nobody knows who else does; make it there with "
            "dataflow.receive_buffer"
        )
    raise OpError(op, f"verify-sync: {reason}")


def check(wiring: Wiring) -> None:
    """
    Raise `PassFailedException` with the first reason to reject a receive buffer's use.
    """
    for rule in RULES:
        if (reason := rule(wiring)) is not None:
            raise OpError(wiring.receive_buffer, f"verify-sync: {reason}")


def check_kernel(kernel: KernelOp) -> None:
    """
    Raise `PassFailedException` for a kernel whose programs race, or may wait for ever.

    They may read a tile before it is stored, or wait for programs that do not run.
    """
    for reason in (coresidency(kernel), arrival(kernel), _persistence(kernel)):
        if reason is not None:
            raise OpError(kernel, f"verify-sync: {reason}")
    for node in kernel.nodes:
        for value in _unawaited(node, kernel):
            raise OpError(
                node,
                f"verify-sync: @{kernel.sym_name.data} reads {called(value)} "
                "that other programs of the same launch make, and waits for nothing "
                "that they signal; put the producer into a kernel of its own",
            )


def _persistence(kernel: KernelOp) -> str | None:
    """No program waits for a tile that another one computes after its first tile."""
    launches = (node.launch for node in kernel.nodes)
    if any(launch is not None and launch.persistent for launch in launches):
        return unfit_for_tiles(kernel)
    return None


def _unawaited(node: SpatialOp, kernel: KernelOp) -> Iterator[SSAValue]:
    """Yield the results of other nodes of a kernel that a node loads without a wait."""
    for value, tile in zip(node.ins, node.tiles, strict=True):
        result = node_result(value)
        if result is None or result.op.parent_op() is not kernel:
            continue

        def is_awaited(
            wait: WaitOp, value: SSAValue = value, result: OpResult = result
        ) -> bool:
            flags = flags_of(wait)
            return (
                wait.own is not None
                and flags is not None
                and is_signalled(node, value, result, flags.buffer)
                and _covers(result, flags)
            )

        if any(loads_before(tile, is_awaited)):
            yield value


def _covers(result: OpResult, flags: FlagsOp) -> bool:
    """Whether a signal of these flags covers the stores of a node's result."""
    assert isinstance(result.op, SpatialOp)
    signals = (op for op in result.op.body.block.ops if isinstance(op, SignalOp))
    stored = result.op.yielded[result.index]
    return any(flags_of(op) is flags and stored in op.covered for op in signals)
