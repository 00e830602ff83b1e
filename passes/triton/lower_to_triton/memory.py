"""The memory that a kernel of `lower-to-triton` works on: buffers, channels, flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.compound import IndexOp, RenameOp
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.dialects.dataflow.channel import ChannelType, ReceiveBufferOp, program_value
from comet.dialects.dataflow.flags import FlagsOp, FlagsType
from comet.dialects.dataflow.transfer import (
    PullOp,
    ReadOp,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import outside
from comet.dialects.tl.remote import FLAG
from comet.dialects.tl.types import BinaryKind
from comet.passes.triton.lower_to_triton.buffers import (
    Buffer,
    Channel,
    Flags,
    Received,
    buffer_at,
    row_major,
)
from comet.passes.triton.lower_to_triton.ranks import RankParameters, add_parameter
from comet.passes.triton.lower_to_triton.slices import Constexprs


def pointed(kernel: dataflow.KernelOp) -> Sequence[SSAValue]:
    """Return the values that a kernel has pointers for, in the order of parameters."""
    return (*kernel.body.block.args, *kernel.results_)


def pointer_type(value: SSAValue) -> Attribute:
    """Return the type of the pointer that stands for a value."""
    if isinstance(value.type, FlagsType):
        return FLAG
    if isinstance(value.type, ChannelType):
        return tl.PtrType(element_type_of(value.type.sent))
    return tl.PtrType(element_type_of(value))


class KernelMemory:
    """What the pointers of one kernel point to."""

    def __init__(
        self,
        kernel: dataflow.KernelOp,
        made: tl.KernelOp,
        constexprs: Constexprs,
        ranks: RankParameters | None,
    ):
        self._kernel, self._made = kernel, made
        self._constexprs, self._ranks = constexprs, ranks
        self.scratch: list[Attribute] = []
        self._pointers = self._symmetric_pointers()
        self.buffers = self._named_buffers()

    def _symmetric_pointers(self) -> dict[SSAValue, SSAValue]:
        """Name the pointers; return those that this program uses, by value."""
        pointers: dict[SSAValue, SSAValue] = {}
        values = pointed(self._kernel)
        for value, pointer in zip(values, self._made.body.block.args, strict=False):
            pointer.name_hint = f"{_name_of(value)}_ptr"
            pointers[value] = self._owned(pointer)
        return pointers

    def _owned(self, pointer: SSAValue) -> SSAValue:
        return (
            pointer if self._ranks is None else self._ranks.symmetric_address(pointer)
        )

    def _named_buffers(self) -> dict[SSAValue, Buffer]:
        """Return the memory behind every tensor that enters, leaves or is received."""
        buffers = {
            value: buffer_at(self._pointers[value], extents_of(value))
            for value in pointed(self._kernel)
            if isinstance(value.type, TensorType)
        }
        ops = list(self._kernel.body.block.ops)
        for value, result in zip(ops[-1].operands, self._kernel.results_, strict=True):
            buffers.setdefault(value, buffers[result])
        for op in ops:
            if isinstance(op, ReadOp | PullOp):
                buffers[op.result] = self._received(op.channel, op.result)
            if isinstance(op, IndexOp):
                buffers[op.result] = self._positions(op)
            if isinstance(op, RenameOp):
                buffers[op.result] = _viewed(op, buffers[op.input])
        return buffers

    def _positions(self, op: IndexOp) -> Buffer:
        """Return positions along a dimension, in the whole if this is a shard."""
        buffer, ranks = buffer_at(None, extents_of(op.result)), self._ranks
        if op.whole is None or ranks is None:
            return buffer
        shard = extents_of(op.result)[op.dim]
        extent = self._constexprs.extent(op.dim, shard)
        first = tl.BinaryOp(BinaryKind.MUL, ranks.rank, extent)
        return replace(buffer, first=ranks.home.add(first, f"first_{op.dim.lower()}"))

    def _received(self, channel: SSAValue, value: SSAValue) -> Received:
        memory = self.channel(channel)
        extents = extents_of(value)
        return Received(
            memory.pointer,
            tuple(extents),
            tuple(extents.values()),
            row_major(extents),
            channel=memory,
        )

    def channel(self, value: SSAValue) -> Channel:
        """
        Return the memory of a channel.

        Raises `PassFailedException` if it has none.
        """
        value = outside(value)
        box = program_value(value)
        if not isinstance(box.owner, ReceiveBufferOp):
            raise PassFailedException(
                f"lower-to-triton: kernel @{self._kernel.sym_name.data} uses a channel "
                "without memory; run lower-channels first"
            )
        slots, pointer = box.owner.slots.value.data, self._pointers[value]
        return Channel(box.owner.type, slots, pointer, _name_of(value))

    def flags(self, value: SSAValue | None, op: Operation) -> Flags:
        """
        Return the flags that an operation works on.

        Raises `PassFailedException` if it has none.
        """
        value = value and outside(value)
        owner = None if value is None else program_value(value).owner
        if value is None or not isinstance(owner, FlagsOp):
            raise PassFailedException(
                f"lower-to-triton: {op.name} in @{self._kernel.sym_name.data} has no "
                "flags; run lower-channels first"
            )
        return Flags(self._pointers[value], owner.type, owner.writers.value.data)

    def target(self, value: SSAValue) -> Buffer:
        """Return where a result of the grid node goes: to a buffer, or nowhere."""
        cache: SSAValue | None = None
        buffer = buffer_at(None, extents_of(value))
        terminator = self._kernel.body.block.last_op
        for use in value.uses:
            op = use.operation
            if op is terminator:
                buffer = self.buffers[self._kernel.results_[use.index]]
            elif isinstance(op, RenameOp | SpatialOp) and self._ranks is not None:
                cache = self._ranks.cache()
        return replace(buffer, cache=cache)

    def scratch_pointer(
        self, element: Attribute, shape: Sequence[int], name: str
    ) -> SSAValue:
        """Add a pointer to a buffer that only this kernel uses."""
        self.scratch.append(TensorType(element, shape))
        return self._owned(add_parameter(self._made, tl.PtrType(element), name))


def _name_of(value: SSAValue) -> str:
    """
    Return the name of a tensor, or of the receive buffer or flags that an argument is.
    """
    if isinstance(value.type, ChannelType | FlagsType):
        value = program_value(value)
    return value.name_hint or "x"


def _viewed(op: RenameOp, buffer: Buffer) -> Buffer:
    """Return the memory of `buffer` under the names that `op` gives."""
    if op.cut is None:
        return buffer.renamed(op.renaming)
    if buffer.origins or buffer.gathered is not None:
        raise PassFailedException(
            f"lower-to-triton: {op.input.type} comes from other ranks and cannot be "
            "seen in parts; split a dimension that is not gathered"
        )
    return buffer_at(buffer.pointer, extents_of(op.result))
