"""Which kernels of several ranks are kernels of one GPU: they exchange nothing."""

from __future__ import annotations

from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.spmd import rank_count
from comet.dialects.dataflow.channel import ChannelType
from comet.dialects.dataflow.flags import FlagsType
from comet.dialects.dataflow.program import KernelOp


def is_local(kernel: KernelOp) -> bool:
    """
    Return whether a kernel neither sends to other ranks nor receives from them.

    It has no channels, and no neighbour that is a collective, which becomes a channel.
    Each rank launches it by itself, as on one GPU. A kernel of one rank is local, also
    if its programs exchange.
    """
    if rank_count(kernel) == 1:
        return True
    if any(isinstance(value.type, ChannelType | FlagsType) for value in kernel.ins):
        return False
    readers = (use.operation for result in kernel.results_ for use in result.uses)
    neighbours = (*(value.owner for value in kernel.ins), *readers, kernel)
    return not any(isinstance(op, KernelOp) and collective_of(op) for op in neighbours)


def launched_ranks(kernel: KernelOp) -> int:
    """Return for how many ranks one launch of a kernel may work, 1 if it is local."""
    return 1 if is_local(kernel) else rank_count(kernel)


def collective_of(kernel: KernelOp) -> CollectiveOp | None:
    """Return the collective of a kernel, None if it computes."""
    ops = kernel.body.block.ops
    return next((op for op in ops if isinstance(op, CollectiveOp)), None)
