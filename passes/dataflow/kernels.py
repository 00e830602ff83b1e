"""Rewrites of the kernels of a launch plan: their operands, their results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from comet.dialects.dataflow import KernelOp


def rebuild_kernel(
    old: KernelOp, ins: Sequence[SSAValue], kept: Sequence[int]
) -> KernelOp:
    """
    Replace a kernel by one with other `ins`, and only the results `kept`.

    The body is moved unchanged; the caller has adapted its arguments and yield. Buffers
    of other results are erased.
    """
    outs = [old.outs[index] for index in kept]
    region = old.detach_region(old.body)
    kernel = KernelOp(old.sym_name.data, ins, outs, region)
    kernel.attributes |= old.attributes
    keep_ranks(old, kernel)
    insert_before(old, kernel)
    for index, result in zip(kept, kernel.results_, strict=True):
        result.name_hint = old.results_[index].name_hint
        old.results_[index].replace_all_uses_with(result)
    buffers = [out.owner for i, out in enumerate(old.outs) if i not in kept]
    erase(old)
    for buffer in buffers:
        assert isinstance(buffer, Operation)
        erase(buffer)
    return kernel


def keep_ranks(old: KernelOp, new: KernelOp) -> None:
    """Copy the properties of a kernel for ranks to the kernel that replaces it."""
    new.sources, new.destinations = old.sources, old.destinations
    new.shards = old.shards


def insert_before(existing: Operation, new: Operation) -> None:
    """Insert an operation before another."""
    block = existing.parent
    assert block is not None
    block.insert_op_before(new, existing)


def erase(op: Operation) -> None:
    """Erase an operation without uses."""
    op.detach()
    op.erase()
