"""The memory that a kernel of `lower-to-triton` works on: buffers, channels, flags."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound import (
    ConcatOp,
    FillOp,
    GatherOp,
    IndexOp,
    RenameOp,
    ScatterAddOp,
    SliceOp,
    View,
)
from comet.dialects.compound.dims import (
    element_type_of,
    elements_of,
    extents_of,
    names_of,
)
from comet.dialects.compound.gather import scatterings
from comet.dialects.compound.views import merges_pages
from comet.dialects.dataflow.arrival import ArriveOp, CountersType
from comet.dialects.dataflow.channel import ChannelType, ReceiveBufferOp, program_value
from comet.dialects.dataflow.flags import FlagsOp, FlagsType
from comet.dialects.dataflow.transfer import (
    PullOp,
    ReadOp,
)
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import outside
from comet.dialects.tl.remote import FLAG
from comet.dialects.tl.types import BinaryKind
from comet.op_table import OpTable
from comet.passes.triton.lower_to_triton.buffers import (
    Buffer,
    Channel,
    Filled,
    Flags,
    Joined,
    Received,
    TableRows,
    buffer_at,
    row_major,
    table_rows,
)
from comet.passes.triton.lower_to_triton.offsets import Constexprs, Prologue
from comet.passes.triton.lower_to_triton.ranks import (
    RankParameters,
    add_parameter,
    write_through,
)


def pointed(kernel: dataflow.KernelOp) -> Sequence[SSAValue]:
    """Return the values that a kernel has pointers for, in the order of parameters."""
    return (*kernel.body.block.args, *kernel.results_)


def pointer_type(value: SSAValue) -> Attribute:
    """Return the type of the parameter that points to a value."""
    if isinstance(value.type, FlagsType | CountersType):
        return FLAG
    if isinstance(value.type, ChannelType):
        return tl.PtrType(element_type_of(value.type.sent))
    return tl.PtrType(element_type_of(value))


class KernelMemory:
    """The buffers of one kernel, and its other pointers."""

    def __init__(
        self,
        kernel: dataflow.KernelOp,
        tl_kernel: tl.KernelOp,
        constexprs: Constexprs,
        ranks: RankParameters | None,
        group: RankParameters | None,
    ):
        self._kernel, self._tl_kernel = kernel, tl_kernel
        self.constexprs, self.ranks, self._group = constexprs, ranks, group
        self.scratch: list[Attribute] = []
        self.entry = Prologue(tl_kernel.body.block) if ranks is None else ranks.home
        """Where the kernel begins, and knows its pointers."""
        self.descriptors: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = {}
        """The descriptors of a tensor, by its pointer and the size of blocks."""
        self.loaded_ids: dict[
            tuple[Hashable, Block, tuple[SSAValue | None, ...]], SSAValue
        ] = {}
        """The loaded ids of rows, by memory, block, and offsets of the slice."""
        self._write_through: SSAValue | None = None
        self._rank: SSAValue | None = None
        self._pointers = self._symmetric_pointers()
        self.buffers = self._tensors()
        for op in kernel.body.block.ops:
            if isinstance(op, ArriveOp):
                stored = (self.buffers[value] for value in op.partials)
                self.buffers |= zip(op.complete, stored, strict=True)
            elif (view := VIEWS.find(op)) is not None:
                self.buffers[op.results[0]] = view(op, self)

    def _symmetric_pointers(self) -> dict[SSAValue, SSAValue]:
        """Name the pointers; return those that this program uses, by value."""
        pointers: dict[SSAValue, SSAValue] = {}
        values = pointed(self._kernel)
        for value, pointer in zip(
            values, self._tl_kernel.body.block.args, strict=False
        ):
            pointer.name_hint = f"{_name_of(value)}_ptr"
            pointers[value] = self._symmetric_address(pointer)
        return pointers

    def _symmetric_address(self, pointer: SSAValue) -> SSAValue:
        if self.ranks is None:
            return pointer
        return self.ranks.shared.symmetric_address(pointer)

    @property
    def rank(self) -> SSAValue:
        """The number of the rank; a local kernel takes it only where it is used."""
        if self.ranks is not None:
            return self.ranks.rank
        if self._rank is None:
            self._rank = add_parameter(self._tl_kernel, i32, "rank")
        return self._rank

    def _tensors(self) -> dict[SSAValue, Buffer]:
        """Return the memory of every tensor that enters or leaves."""
        buffers = {
            value: buffer_at(self._pointers[value], extents_of(value))
            for value in pointed(self._kernel)
            if isinstance(value.type, TensorType)
        }
        pairs = zip(self._kernel.yielded, self._kernel.results_, strict=True)
        for value, result in pairs:
            buffers.setdefault(value, replace(buffers[result], of_launch=True))
        return buffers

    def channel(self, value: SSAValue) -> Channel:
        """
        Return the memory of a channel.

        Raises `PassFailedException` for a channel without memory, and outside of an
        SPMD region.
        """
        value = outside(value)
        buffer = program_value(value).owner
        if not isinstance(buffer, ReceiveBufferOp):
            raise PassFailedException(
                f"lower-to-triton: kernel @{self._kernel.sym_name.data} uses a channel "
                "without memory; run lower-channels first"
            )
        ranks = self._group if buffer.in_one_memory else self.ranks
        if ranks is None:
            raise PassFailedException(
                "lower-to-triton: channels join ranks, and the program is in no "
                "collective.spmd; run insert-collectives on the function first"
            )
        slots, pointer = buffer.slots.value.data, self._pointers[value]
        return Channel(buffer.type, slots, pointer, _name_of(value), ranks)

    def flags(self, value: SSAValue | None, op: Operation) -> Flags:
        """
        Return the flags that an operation works on.

        Raises `PassFailedException` if it has none.
        """
        value = value and outside(value)
        owner = None if value is None else program_value(value).owner
        if value is None or not isinstance(owner, FlagsOp):
            raise OpError(
                op,
                f"lower-to-triton: {op.name} in @{self._kernel.sym_name.data} has no "
                "flags; run lower-channels first",
            )
        return Flags(self._pointers[value], owner.type, owner.writers.value.data)

    def counters(self, value: SSAValue) -> SSAValue:
        """Return the pointer to the first of some counters."""
        return self._pointers[value]

    def target(self, value: SSAValue) -> Buffer:
        """Return where a result of the grid node goes: to a buffer, or nowhere."""
        cache: SSAValue | None = None
        buffer = buffer_at(None, extents_of(value))
        terminator = self._kernel.body.block.last_op
        for use in value.uses:
            op = use.operation
            if op is terminator:
                buffer = self.buffers[self._kernel.results_[use.index]]
            elif isinstance(op, View | SpatialOp) and self.ranks is not None:
                cache = self.ranks.shared.cache()
            elif isinstance(op, ArriveOp):
                cache = self._cache()
        added: Buffer | None = None
        for op in scatterings(value):
            added = replace(self._rows_added_to(op), copy=added)
        if buffer.pointer is None and added is not None:
            return added
        return replace(buffer, cache=cache, copy=added)

    def _rows_added_to(self, op: ScatterAddOp) -> Buffer:
        """Return the rows of a result that its ids name."""
        table, ids = self.buffers[op.result], self.buffers[op.ids]
        rows = table_rows(table, ids, element_type_of(op.ids), op.into)
        assert rows is not None  # a result of a kernel has strides
        return replace(rows, adds=True)

    def _cache(self) -> SSAValue:
        """Return how stores that other programs of this GPU load treat caches."""
        if self._write_through is None:
            self._write_through = write_through(self._tl_kernel)
        return self._write_through

    def scratch_pointer(
        self, element: Attribute, shape: Sequence[int], name: str
    ) -> SSAValue:
        """Add a pointer to a buffer that only this kernel uses."""
        self.scratch.append(TensorType(element, shape))
        return self._symmetric_address(
            add_parameter(self._tl_kernel, tl.PtrType(element), name)
        )


def _name_of(value: SSAValue) -> str:
    """
    Return the name of a tensor, or of the receive buffer, flags or counters that an
    argument is.
    """
    if isinstance(value.type, ChannelType | FlagsType | CountersType):
        value = program_value(value)
    return value.name_hint or "x"


VIEWS = OpTable[KernelMemory, Buffer]()
"""How the views between the nodes of a kernel address memory."""
views = VIEWS.enter


def received(channel: SSAValue, value: SSAValue, memory: KernelMemory) -> Received:
    """Return the memory of a channel, with the dimension names of a view of it."""
    extents, found = extents_of(value), memory.channel(channel)
    sizes = tuple(extents.values())
    strides = row_major(extents)
    return Received(found.pointer, tuple(extents), sizes, strides, channel=found)


@views(ReadOp)
def view_receive_buffer(op: ReadOp, memory: KernelMemory) -> Buffer:
    """Return the rank's receive buffer, to which all ranks have pushed."""
    return received(op.channel, op.result, memory)


@views(PullOp)
def view_of_peers(op: PullOp, memory: KernelMemory) -> Buffer:
    """Return the buffers in which the ranks have staged their values."""
    return received(op.channel, op.result, memory)


@views(IndexOp)
def view_positions(op: IndexOp, memory: KernelMemory) -> Buffer:
    """Return positions along a dimension, in the whole if this is a shard."""
    buffer = buffer_at(None, extents_of(op.result))
    if op.whole is None or rank_count(op) == 1:
        return buffer
    shard = extents_of(op.result)[op.dim]
    extent = memory.constexprs.extent(op.dim, shard)
    first = tl.BinaryOp(BinaryKind.MUL, memory.rank, extent)
    return replace(buffer, first=memory.entry.insert(first, f"first_{op.dim.lower()}"))


@views(RenameOp)
def view_renamed(op: RenameOp, memory: KernelMemory) -> Buffer:
    """
    Return the same memory under other names, with axes split or merged.

    Raises `PassFailedException` for views that are no strides in memory.
    """
    buffer, extents = memory.buffers[op.input], extents_of(op.result)
    if not op.reshapes:
        return buffer.renamed(op.renaming)
    _check_reshaped(op, buffer)
    if buffer.pointer is not None and _is_row_major(buffer, op.input):
        return buffer_at(buffer.pointer, extents)
    if op.merged and isinstance(buffer, TableRows) and merges_pages(op):
        outer, inner = op.merged
        return buffer.pages(outer, inner, op.renaming[outer])
    if (dim := op.dropped) is not None and type(buffer) is Buffer:
        return _without(dim, buffer, memory).renamed(op.renaming)
    renamed = buffer.renamed(op.renaming)
    if op.cut is None or (isinstance(buffer, Joined) and buffer.along == op.cut):
        raise OpError(
            op,
            f"lower-to-triton: {op.result.type} is no part of one tensor in memory; "
            "run lower-views before fuse",
        )
    outer = op.renaming[op.cut]
    inner = names_of(op.result)[names_of(op.result).index(outer) + 1]
    return renamed.split(outer, (outer, inner), extents[inner])


def _check_reshaped(op: RenameOp, buffer: Buffer) -> None:
    """Raise `PassFailedException` for memory whose axes cannot be split or merged."""
    if buffer.origins or buffer.gathered is not None:
        raise OpError(
            op,
            f"lower-to-triton: {op.input.type} comes from other ranks and cannot be "
            "seen in parts; split a dimension that is not gathered",
        )
    if buffer.pointer is None and type(buffer) is Buffer:  # positions
        raise OpError(
            op,
            f"lower-to-triton: {op.input.type} has positions, which are not in memory; "
            "run lower-views before fuse",
        )


def _is_row_major(buffer: Buffer, value: SSAValue) -> bool:
    """Whether memory has all elements of a value, one after another in their order."""
    if isinstance(buffer, TableRows) or any(buffer.shifts.values()):
        return False
    is_whole = buffer.elements == elements_of(value)  # not the first part of a slice
    in_memory = row_major(dict(zip(buffer.dims, buffer.extents)))
    return is_whole and buffer.strides == in_memory


def _without(dim: str, buffer: Buffer, memory: KernelMemory) -> Buffer:
    """Return the memory at the only position of a dimension."""
    pointer, first = buffer.pointer, buffer.shifts.get(dim, 0)
    stride = buffer.strides[buffer.dims.index(dim)]
    if first and pointer is not None and stride is not None:
        step: SSAValue = memory.entry.integer(first)
        for name, size in stride:
            extent = memory.constexprs.extent(name, size)
            step = memory.entry.insert(tl.BinaryOp(BinaryKind.MUL, step, extent))
        pointer = memory.entry.insert(tl.AddPtrOp(pointer, step))
    return replace(buffer.without(dim), pointer=pointer)


@views(SliceOp)
def view_slice(op: SliceOp, memory: KernelMemory) -> Buffer:
    """Return the memory of the positions that a slice takes."""
    buffer = memory.buffers[op.input]
    for dim, first in op.offsets.items():
        buffer = buffer.shifted(dim, first)
    return buffer


@views(ConcatOp)
def view_joined(op: ConcatOp, memory: KernelMemory) -> Buffer:
    """Return the memory of several values as one."""
    dim, extents = op.dim.data, extents_of(op.result)
    inputs = tuple(
        memory.buffers[value].shifted(dim, -first)
        for value, first in zip(op.inputs, op.firsts, strict=True)
    )
    layout = buffer_at(None, extents)
    return Joined(
        None,
        layout.dims,
        layout.extents,
        layout.strides,
        along=dim,
        inputs=inputs,
        firsts=op.firsts,
    )


@views(GatherOp)
def view_rows(op: GatherOp, memory: KernelMemory) -> Buffer:
    """Return the rows of a table in memory; of a constant, the constant."""
    table, ids = memory.buffers[op.table], memory.buffers[op.ids]
    if isinstance(table, Filled):
        layout = buffer_at(None, extents_of(op.result))
        sizes, strides = layout.extents, layout.strides
        return replace(table, dims=layout.dims, extents=sizes, strides=strides)
    rows = table_rows(table, ids, element_type_of(op.ids), op.along)
    if rows is None:
        raise OpError(
            op,
            f"lower-to-triton: {op.table.type} is no tensor in memory; run lower-views "
            "before fuse",
        )
    return rows


@views(FillOp)
def view_filled(op: FillOp, memory: KernelMemory) -> Buffer:
    """Return the number that a constant has everywhere."""
    layout = buffer_at(None, extents_of(op.result))
    return Filled(
        None, layout.dims, layout.extents, layout.strides, number=op.value.value.data
    )
