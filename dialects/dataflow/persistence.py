"""Which kernels can have persistent programs, each of which does several tiles."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from comet.dialects.compound import ContractOp, GatherOp, ScatterAddOp
from comet.dialects.dataflow.arrival import ArriveOp
from comet.dialects.dataflow.channel import program_value
from comet.dialects.dataflow.program import KernelOp
from comet.dialects.dataflow.transfer import SignalOp, WaitOp
from comet.dialects.schedule import SpatialOp, TemporalOp


def unfit_for_tiles(kernel: KernelOp) -> str | None:
    """
    Return why no program of a kernel can do one tile after another, None if it can.

    A program does its next tile only when the one before has ended. If it waits for
    earlier nodes and launches only, no order of the tiles of a node can make it wait
    forever; so it must not wait for tiles of the same node.
    """
    name = f"kernel @{kernel.sym_name.data}"
    if kernel.coresident is not None:
        return (
            f"{name} has groups of programs that wait for each other, and each group "
            "does its rows in turns already; leave it out, or use ctas=1"
        )
    if kernel.launch is not None and kernel.launch.cluster > 1:
        return (
            f"{name} has programs that are clusters of thread blocks, which are not "
            "persistent; leave it out, or leave cluster out of its factors"
        )
    for node in kernel.nodes:
        if set(_channels(node, SignalOp)) & set(_channels(node, WaitOp)):
            return (
                f"{name} waits for what programs of the same node signal, perhaps "
                "after a tile that comes later; wait in a later node or launch"
            )
    return None


def loads_tiles_ahead(kernel: KernelOp) -> bool:
    """
    Return whether a loop over tiles may load later ones while a tile is computed.

    Loads of products have a software pipeline anyway. Others have one in a loop that
    asks for it, has no loop inside, and loads what positions alone name (Triton 3.6 and
    3.9). Nothing may be loaded before a wait.
    """
    return not any(
        isinstance(op, _NOT_AHEAD)
        or (isinstance(op, TemporalOp) and any(loop.factor > 1 for loop in op.loops))
        for op in kernel.walk()
    )


_NOT_AHEAD = (ContractOp, GatherOp, ScatterAddOp, WaitOp, SignalOp, ArriveOp)


def _channels(node: SpatialOp, kind: type[SignalOp | WaitOp]) -> Iterator[SSAValue]:
    """Yield the channels that ops in a node signal, or wait for."""
    return (program_value(op.channel) for op in node.walk() if isinstance(op, kind))
