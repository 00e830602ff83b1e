"""The memory of a kernel: tensors, and channels with their flags."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from xdsl.ir import Attribute, SSAValue

from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.dataflow.channel import ChannelMode, ChannelType
from comet.dialects.dataflow.flags import FlagsType
from comet.passes.triton.lower_to_triton.ranks import RankParameters

MAX_INDEX = 2**31 - 1

T = TypeVar("T")


Stride = tuple[tuple[str, int], ...]
"""
The extents whose product is the distance of neighbours, in elements.

They are the extents of the tensor in memory; a node, or a rank, may have only a part
of a dimension.
"""


@dataclass(frozen=True)
class MergedDim:
    """
    One of the two dimensions in memory, outer and inner, that a view merges.

    A position in the merged dimension is outer * extent of inner + inner.
    """

    inner: tuple[str, int]
    """The name of the inner dimension, and its extent in elements."""
    is_inner: bool
    """Whether this is the inner dimension, else the outer one."""


def row_major(extents: Mapping[str, int]) -> tuple[Stride, ...]:
    """Return the strides of a tensor that has these extents in memory."""
    inner = tuple(extents.items())
    return tuple(inner[axis + 1 :] for axis in range(len(inner)))


@dataclass(frozen=True)
class Gathered:
    """A gathered dimension, whose shards are in a message of each rank."""

    dim: str
    shard: int
    """How many elements of the dimension a rank has."""
    stored: str
    """The dimension's name where it is stored."""
    message: Stride | None
    """
    The size of what one rank sent, empty for one element; None where it is in that
    rank's memory.
    """
    ranks: RankParameters

    @property
    def is_remote(self) -> bool:
        """Whether every source is loaded from its own memory."""
        return self.message is None

    @property
    def messages(self) -> int:
        """How many values of the buffer's size are contiguous."""
        return 1 if self.is_remote else self.ranks.world


@dataclass(frozen=True)
class Buffer:
    """A tensor in device memory."""

    pointer: SSAValue | None
    """None for the positions along a dimension, which are computed where needed."""
    dims: tuple[str, ...]
    extents: tuple[int, ...]
    """Extents in memory, in elements."""
    strides: tuple[Stride | None, ...]
    """One for each dimension; None where memory has a single element of it."""
    origins: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """The first element that is in memory, where that is not the dimension's first."""
    gathered: Gathered | None = None
    first: SSAValue | None = None
    """The number of the first position along a dimension, if it is not 0."""
    cache: SSAValue | None = None
    """The cache modifier of stores that other programs of the launch read."""
    within: SSAValue | None = None
    """The mask of stores: other programs store the same tiles. None stores all."""
    copy: Buffer | None = None
    """Another buffer for the same tiles: a store writes both."""
    adds: bool = False
    """Whether stores are atomic additions, as other programs add to the same tiles."""
    shifts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The position in memory of a slice's first element, where that is not 0."""
    merged: Mapping[str, MergedDim] = field(default_factory=dict[str, MergedDim])
    """The merged dimensions; memory has one of the two that each merges."""
    of_launch: bool = False
    """Whether programs of the same launch store it, so that loads follow waits."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)

    @property
    def identity(self) -> Hashable:
        """A key that is equal for views of the same elements."""
        if type(self) is not Buffer or self.pointer is None:
            return id(self)
        places = tuple(self.shifts.items()), tuple(self.merged.items())
        return self.pointer, self.dims, self.strides, places

    def only_where(self, within: SSAValue | None) -> Self:
        """Return the memory, and its copy, where stores have the mask `within`."""
        copy = None if self.copy is None else self.copy.only_where(within)
        return replace(self, within=within, copy=copy)

    def renamed(self, renaming: Mapping[str, str]) -> Self:
        """Return the same memory under other dimension names."""
        gathered = self.gathered
        return replace(
            self,
            dims=tuple(renaming[dim] for dim in self.dims),
            strides=tuple(_renamed(stride, renaming) for stride in self.strides),
            origins={renaming[dim]: value for dim, value in self.origins.items()},
            gathered=gathered and replace(gathered, dim=renaming[gathered.dim]),
            shifts={renaming[dim]: first for dim, first in self.shifts.items()},
            merged={renaming[dim]: pair for dim, pair in self.merged.items()},
        )

    def merged_into(self, dim: str, into: str, merged: MergedDim) -> Self:
        """Return the memory with `dim` as one of the two that `into` merges."""
        dims = tuple(into if name == dim else name for name in self.dims)
        return replace(self, dims=dims, merged={**self.merged, into: merged})

    def without(self, dim: str) -> Self:
        """Return the memory without a dimension, at its first element."""
        kept = [at for at, name in enumerate(self.dims) if name != dim]
        return replace(
            self,
            dims=tuple(self.dims[at] for at in kept),
            extents=tuple(self.extents[at] for at in kept),
            strides=tuple(self.strides[at] for at in kept),
            shifts={name: n for name, n in self.shifts.items() if name != dim},
        )

    def shifted(self, dim: str, first: int) -> Self:
        """Return the memory of the positions from `first` on along `dim`."""
        shift = self.shifts.get(dim, 0) + first
        return replace(self, shifts={**self.shifts, dim: shift})

    def split(self, dim: str, into: tuple[str, str], size: int) -> Self:
        """Return the memory with `dim` seen as two, the inner one of extent `size`."""
        axis, (outer, inner) = self.dims.index(dim), into
        strides = tuple(_split(stride, dim, into, size) for stride in self.strides)
        stride = strides[axis]
        pair = None if stride is None else ((inner, size), *stride), stride
        shifts = {inner if d == dim else d: n for d, n in self.shifts.items()}
        return replace(
            self,
            dims=(*self.dims[:axis], outer, inner, *self.dims[axis + 1 :]),
            extents=(
                *self.extents[:axis],
                self.extents[axis] // size,
                size,
                *self.extents[axis + 1 :],
            ),
            strides=(*strides[:axis], *pair, *strides[axis + 1 :]),
            shifts=shifts,
        )


@dataclass(frozen=True)
class Filled(Buffer):
    """A number in place of a tensor."""

    number: float = 0.0


@dataclass(frozen=True)
class Joined(Buffer):
    """Several tensors, one after the other along a dimension."""

    along: str = ""
    inputs: tuple[Buffer, ...] = ()
    """Each has its first element where it is in the whole."""
    firsts: tuple[int, ...] = ()
    """The position of the first element of each."""

    def renamed(self, renaming: Mapping[str, str]) -> Self:
        """Return the same tensors under other dimension names."""
        inputs = tuple(each.renamed(renaming) for each in self.inputs)
        dims = tuple(renaming[dim] for dim in self.dims)
        return replace(self, dims=dims, along=renaming[self.along], inputs=inputs)

    def shifted(self, dim: str, first: int) -> Self:
        """Return the tensors, of whose whole `first` is where `dim` begins."""
        inputs = tuple(each.shifted(dim, first) for each in self.inputs)
        begin = first if dim == self.along else 0
        firsts = tuple(position - begin for position in self.firsts)
        return replace(self, inputs=inputs, firsts=firsts)

    def split(self, dim: str, into: tuple[str, str], size: int) -> Self:
        """Return the tensors with another dimension than theirs seen as two."""
        axis = self.dims.index(dim)
        dims = (*self.dims[:axis], *into, *self.dims[axis + 1 :])
        inputs = tuple(each.split(dim, into, size) for each in self.inputs)
        return replace(self, dims=dims, inputs=inputs)


@dataclass(frozen=True, kw_only=True)
class TableRows(Buffer):
    """
    The rows that a gather takes from a table.

    The dimensions of the ids have no strides: they name rows.
    """

    ids: Buffer
    """The number of the row at each position along some of the dimensions."""
    ids_type: Attribute
    """The element type of the ids: i32 or i64."""
    row: Stride
    """The distance of neighbouring rows in the table."""
    first_row: int
    """The position of row 0 in memory."""
    table: int
    """The elements of the table."""

    @property
    def elements(self) -> int:
        """The number of elements that addresses go over."""
        return self.table

    def renamed(self, renaming: Mapping[str, str]) -> Self:
        """Return the same rows under other dimension names."""
        id_names = {dim: renaming[dim] for dim in self.ids.dims}
        ids, row = self.ids.renamed(id_names), _renamed(self.row, renaming)
        return replace(super().renamed(renaming), ids=ids, row=row)

    def shifted(self, dim: str, first: int) -> Self:
        """Return the rows of which `first` is where `dim` begins."""
        if dim not in self.ids.dims:
            return super().shifted(dim, first)
        rows = super().shifted(dim, first) if dim in self.merged else self
        return replace(rows, ids=self.ids.shifted(dim, first))

    def pages(self, outer: str, inner: str, into: str) -> Self:
        """
        Return the rows with two dimensions seen as one.

        The outer one is the last dimension of the ids, and the inner one is next.
        """
        at, extents = self.dims.index(outer), self.extents
        two = inner, extents[at + 1]
        rows = self.merged_into(inner, into, MergedDim(two, is_inner=True))
        return replace(
            rows,
            dims=(*rows.dims[:at], *rows.dims[at + 1 :]),
            extents=(*extents[:at], extents[at] * extents[at + 1], *extents[at + 2 :]),
            strides=(*rows.strides[:at], *rows.strides[at + 1 :]),
            ids=self.ids.merged_into(outer, into, MergedDim(two, is_inner=False)),
        )

    def split(self, dim: str, into: tuple[str, str], size: int) -> Self:
        """Return the rows with `dim` seen as two, the inner one of extent `size`."""
        rows = super().split(dim, into, size)
        if dim in self.ids.dims:
            return replace(rows, ids=self.ids.split(dim, into, size))
        return rows


def table_rows(
    table: Buffer, ids: Buffer, ids_type: Attribute, dim: str
) -> TableRows | None:
    """
    Return the rows that a gather along `dim` takes from a table.

    `ids_type` is the element type of the ids. None for a table without strides in
    memory.
    """
    at = table.dims.index(dim)
    row = table.strides[at]
    scattered = isinstance(table, Joined | TableRows) or table.gathered is not None
    if table.pointer is None or row is None or scattered:
        return None

    def joined(items: tuple[T, ...], inserted: tuple[T, ...]) -> tuple[T, ...]:
        return (*items[:at], *inserted, *items[at + 1 :])

    return TableRows(
        pointer=table.pointer,
        dims=joined(table.dims, ids.dims),
        extents=joined(table.extents, ids.extents),
        strides=joined(table.strides, tuple(None for _ in ids.dims)),
        origins=table.origins,
        shifts={d: first for d, first in table.shifts.items() if d != dim},
        ids=ids,
        ids_type=ids_type,
        row=row,
        first_row=table.shifts.get(dim, 0),
        table=table.elements,
    )


def buffer_at(
    pointer: SSAValue | None,
    extents: Mapping[str, int],
    origins: Mapping[str, SSAValue] | None = None,
) -> Buffer:
    """Return the memory at `pointer`, row-major, of a tensor with these extents."""
    shape = tuple(extents.values())
    return Buffer(pointer, tuple(extents), shape, row_major(extents), origins or {})


def _renamed(stride: Stride | None, renaming: Mapping[str, str]) -> Stride | None:
    """Return a stride whose extents go by the new names of their dimensions."""
    if stride is None:
        return None
    return tuple((renaming.get(dim, dim), extent) for dim, extent in stride)


def _split(
    stride: Stride | None, dim: str, into: tuple[str, str], size: int
) -> Stride | None:
    """Return a stride with two extents in the place of that of `dim`, see `split`."""
    if stride is None:
        return None
    found: Stride = ()
    for name, extent in stride:
        divides = name == dim and extent % size == 0
        pair = (into[0], extent // size), (into[1], size)
        found = (*found, *(pair if divides else ((name, extent),)))
    return found


@dataclass(frozen=True)
class Flags:
    """The flags of a channel, as a kernel sees them."""

    pointer: SSAValue
    type: FlagsType
    writers: int
    """How many signals a flag gets in each epoch."""


@dataclass(frozen=True)
class Channel:
    """A channel whose memory has been laid out, as a kernel sees it."""

    type: ChannelType
    slots: int
    pointer: SSAValue
    name: str
    ranks: RankParameters
    """The ranks, or the programs of a group, that exchange through it."""

    @property
    def in_memory(self) -> dict[str, int]:
        """The extents of one sender's message in one slot."""
        pushed = self.type.mode is ChannelMode.PUSH
        return extents_of(self.type.message if pushed else self.type.sent)

    @property
    def slot_stride(self) -> Stride:
        """
        The distance between the messages of two senders, or between two slots of one
        sender.
        """
        return tuple(self.in_memory.items())

    @property
    def is_wide(self) -> bool:
        """Whether 32 bits are too few to count the elements of all slots."""
        sources = self.ranks.world if self.type.mode is ChannelMode.PUSH else 1
        sent = math.prod(extents_of(self.type.sent).values())
        return self.slots * sources * sent > MAX_INDEX


@dataclass(frozen=True)
class Received(Buffer):
    """The values of all ranks in a channel; the source is chosen later."""

    channel: Channel | None = None

    @property
    def gather(self) -> str:
        """The dimension along which the senders' values are concatenated."""
        assert self.channel is not None
        names = names_of(self.channel.type.received)
        return self.dims[names.index(self.channel.type.gather)]
