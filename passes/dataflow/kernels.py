"""Rewrites of the kernels of a launch plan: their operands, their results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import terminator_of
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound import FillOp, IndexOp
from comet.dialects.compound.views import View
from comet.dialects.dataflow import ArriveOp, BarrierOp, KernelOp, ProgramOp, YieldOp
from comet.dialects.dataflow.locality import collective_of
from comet.dialects.dataflow.program import shards_attr
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp


def has_only_nodes(kernel: KernelOp) -> bool:
    """
    Return whether a kernel has nodes, what they read, and arrivals of their programs.

    Not so one with ops on channels, or whose programs share a list of tiles.
    """
    allowed = (SpatialOp, View, IndexOp, FillOp, ArriveOp, YieldOp)
    return all(isinstance(op, allowed) for op in kernel.body.block.ops)


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
    kernel.sources, kernel.destinations = old.sources, old.destinations
    kernel.shards, kernel.coresident = old.shards, old.coresident
    Rewriter.insert_op(kernel, InsertPoint.before(old))
    for index, result in zip(kept, kernel.results_, strict=True):
        old.results_[index].replace_all_uses_with(result)
    buffers = [out.owner for i, out in enumerate(old.outs) if i not in kept]
    Rewriter.erase_op(old)
    for buffer in buffers:
        assert isinstance(buffer, Operation)
        Rewriter.erase_op(buffer)
    return kernel


def inside(value: SSAValue, block: Block) -> SSAValue:
    """
    Return a value of a kernel in a block of its nodes, the inverse of `outside`.

    Nodes around the block get it as an operand `with`, unless they have it.
    """
    node = block.parent_op()
    if not isinstance(node, NodeOp):
        return value
    assert node.parent is not None
    return node.add_with_arg(inside(value, node.parent))


def place_barriers(program: ProgramOp) -> None:
    """
    Put barriers only where they are needed.

    One of all ranks is between kernels that compute and collectives, also before the
    end. A kernel that reads what was written since the last barrier needs one, too;
    between kernels that compute, on several ranks, it orders those of one rank.
    """
    for op in list(program.body.block.ops):
        if isinstance(op, BarrierOp):
            Rewriter.erase_op(op)
    on_ranks, moved = rank_count(program) > 1, False
    written: set[SSAValue] = set()
    for kernel in program.kernels():
        before, moved = moved, collective_of(kernel) is not None
        reads_new = not written.isdisjoint(kernel.ins)
        if before != moved or reads_new:
            local = on_ranks and not (before or moved)
            Rewriter.insert_op(BarrierOp(local=local), InsertPoint.before(kernel))
            written.clear()
        written.update(kernel.results_)
    if moved:
        end = InsertPoint.before(terminator_of(program.body.block))
        Rewriter.insert_op(BarrierOp(), end)


def joined(first: KernelOp, second: KernelOp) -> KernelOp:
    """
    Replace two kernels by one, at the position of the second; return it.

    Its first programs do the nodes of the first kernel.
    """
    operands = dict.fromkeys((*first.ins, *second.ins))
    ins = tuple(value for value in operands if value not in first.results_)
    body = Block(arg_types=[value.type for value in ins])
    values: dict[SSAValue, SSAValue] = dict(zip(ins, body.args, strict=True))
    yielded: list[SSAValue] = []
    for kernel in (first, second):
        results = _copy_into(body, kernel, values)
        values |= zip(kernel.results_, results, strict=True)
        yielded += results
    body.add_op(YieldOp(*yielded))
    outs = (*first.outs, *second.outs)
    kernel = KernelOp(second.sym_name.data, ins, outs, Region(body))
    _keep_attributes(kernel, first, second)
    Rewriter.insert_op(kernel, InsertPoint.before(second))
    before = (*first.results_, *second.results_)
    for old, new in zip(before, kernel.results_, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(second)
    Rewriter.erase_op(first)
    return kernel


def _copy_into(
    body: Block, kernel: KernelOp, values: dict[SSAValue, SSAValue]
) -> Sequence[SSAValue]:
    """Copy the ops of a kernel to the end of `body`; return what it yields there."""
    inner: dict[SSAValue, SSAValue] = {}
    for argument, value in zip(kernel.body.block.args, kernel.ins, strict=True):
        inner[argument] = values[value]
        values[value].name_hint = values[value].name_hint or argument.name_hint
    *ops, _ = kernel.body.block.ops
    body.add_ops([op.clone(value_mapper=inner) for op in ops])
    return [inner[value] for value in kernel.yielded]


def _keep_attributes(kernel: KernelOp, first: KernelOp, second: KernelOp) -> None:
    """Give `kernel` the properties of both kernels for their dimensions."""
    kernel.attributes |= {**first.attributes, **second.attributes}
    kernel.sources = _names(first.sources, second.sources)
    kernel.destinations = _names(first.destinations, second.destinations)
    kernel.shards = shards_attr(first.shard_extents | second.shard_extents)


def _names(
    first: ArrayAttr[StringAttr] | None, second: ArrayAttr[StringAttr] | None
) -> ArrayAttr[StringAttr] | None:
    names = dict.fromkeys((*(first or ()), *(second or ())))
    return ArrayAttr(names) if names else None
