"""
Values inside a Triton kernel: blocks in registers, and tensors in device memory.

A block has an axis for each dimension of its type whose tiles have more than one
element, in the order of the type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects.builtin import StringAttr, f32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.tl_types import BinaryKind, element_of, shape_of
from comet.passes.lower_to_triton_slices import Constexprs, DimSlice, Prologue

MAX_ELEMENTS = 2**20
"""Triton refuses blocks of more elements."""
MAX_INDEX = 2**31 - 1


@dataclass(frozen=True)
class Tile:
    """A block in registers."""

    value: SSAValue
    dims: tuple[str, ...]
    """The dimension of each axis."""
    padding: Mapping[str, float] = field(default_factory=dict[str, float])
    """
    What the elements beyond the end of a dimension hold, where that is known.
    """


@dataclass(frozen=True)
class Buffer:
    """A row-major tensor in device memory."""

    pointer: SSAValue | None
    """None for the positions along a dimension, which are computed where needed."""
    dims: tuple[str, ...]
    extents: tuple[int, ...]
    """Global extents, in elements."""
    stride_dims: tuple[str, ...]
    """The constexpr that holds each extent; `dims` unless axes have been renamed."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)


@dataclass
class Scope:
    """Where operations are being inserted, and what is known there."""

    builder: Builder
    prologue: Prologue
    constexprs: Constexprs
    slices: dict[str, DimSlice]
    values: dict[SSAValue, Tile | Buffer] = field(
        default_factory=dict[SSAValue, "Tile | Buffer"]
    )

    def insert(
        self, op: Operation, hint: str | None = None, comment: str | None = None
    ) -> SSAValue:
        """Insert an operation with one result; return the result."""
        self.builder.insert(op)
        if comment is not None:
            op.attributes["tl.comment"] = StringAttr(comment)
        op.results[0].name_hint = hint
        return op.results[0]

    def axes(self, dims: Sequence[str]) -> tuple[str, ...]:
        """Return those of the dimensions for which blocks have an axis."""
        return tuple(dim for dim in dims if self.slices[dim].has_axis)

    def block_sizes(self, dims: Sequence[str]) -> list[SSAValue]:
        """Return the constexprs of a block's shape."""
        return [
            self.constexprs.block(dim, self.slices[dim].block)
            for dim in self.axes(dims)
        ]

    def tile(self, value: SSAValue) -> Tile:
        """Return the block that stands for `value`."""
        found = self.values[value]
        if isinstance(found, Buffer):
            raise PassFailedException(
                f"lower-to-triton: {value.type} is used where it lies in device "
                "memory; load it at the border of a node first"
            )
        return found

    def constant(self, number: float, type: Attribute) -> SSAValue:
        """Return a scalar constant."""
        return self.insert(tl.ConstantOp.of(number, element_of(type)))


def aligned(scope: Scope, tile: Tile, dims: Sequence[str]) -> SSAValue:
    """Return the block with its axes as in `dims`, of extent 1 where it lacks one."""
    kept = [dim for dim in dims if dim in tile.dims]
    value = tile.value
    if tuple(kept) != tile.dims:
        order = [tile.dims.index(dim) for dim in kept]
        value = scope.insert(tl.PermuteOp(value, order))
    missing = [axis for axis, dim in enumerate(dims) if dim not in kept]
    if not kept or not missing:
        return value
    return scope.insert(tl.ExpandDimsOp(value, missing))


def widened(scope: Scope, value: SSAValue) -> SSAValue:
    """Return the block in f32: the interpreter cannot compute in bf16."""
    return value if element_of(value.type) == f32 else converted(scope, value, f32)


def converted(
    scope: Scope,
    value: SSAValue,
    element: Attribute,
    hint: str | None = None,
    comment: str | None = None,
) -> SSAValue:
    """Return the value with another element type; a constant stays one."""
    if isinstance(constant := value.owner, tl.ConstantOp):
        return scope.constant(constant.value.value.data, element)
    return scope.insert(tl.CastOp(value, element), hint, comment)


def masked(
    scope: Scope, tile: Tile, dim: str, neutral: float, always: bool = False
) -> Tile:
    """
    Return the tile with `neutral` in all elements beyond the end of `dim`.

    `always` asks for the selection even where it changes nothing.
    """
    mask = scope.slices[dim].mask(always)
    if mask is None or (tile.padding.get(dim) == neutral and not always):
        return tile
    if dim in tile.dims:
        mask = aligned(scope, Tile(mask, (dim,)), tile.dims)
    other = scope.constant(neutral, tile.value.type)
    value = scope.insert(tl.WhereOp(mask, tile.value, other))
    return Tile(value, tile.dims, {**tile.padding, dim: neutral})


def check_size(dims: Sequence[str], scope: Scope) -> None:
    """Raise `PassFailedException` where a block is larger than Triton's limit."""
    count = math.prod(scope.slices[dim].block for dim in dims)
    if count > MAX_ELEMENTS:
        shape = " x ".join(f"{dim}={scope.slices[dim].block}" for dim in dims)
        raise PassFailedException(
            f"lower-to-triton: a block of {shape} has {count} elements, Triton takes "
            f"{MAX_ELEMENTS}; choose smaller tiles"
        )


def load(scope: Scope, buffer: Buffer, neutral: float, hint: str, comment: str) -> Tile:
    """Read the current slice of a buffer; `neutral` stands beyond its ends."""
    check_size(buffer.dims, scope)
    axes = scope.axes(buffer.dims)
    pointers, mask = _addresses(scope, buffer, axes)
    if mask is None:
        return Tile(scope.insert(tl.LoadOp(pointers), hint, comment), axes)
    other = scope.constant(neutral, _pointee(buffer))
    value = scope.insert(tl.LoadOp(pointers, mask, other), hint, comment)
    padding = {dim: neutral for dim in buffer.dims if not scope.slices[dim].exact}
    return Tile(value, axes, padding)


def positions(scope: Scope, buffer: Buffer, element: Attribute) -> Tile:
    """Return where the elements of the current slice stand in the whole dimension."""
    offsets = scope.slices[buffer.dims[0]].offsets()
    axes = scope.axes(buffer.dims)
    if offsets is None:
        return Tile(scope.constant(0.0, element), axes)
    return Tile(scope.insert(tl.CastOp(offsets, element), None, "compound.index"), axes)


def store(scope: Scope, buffer: Buffer, tile: Tile, comment: str) -> None:
    """Write a tile to the current slice of a buffer."""
    axes = scope.axes(buffer.dims)
    pointers, mask = _addresses(scope, buffer, axes)
    value = aligned(scope, tile, axes)
    if shape_of(value.type) != shape_of(pointers.type):
        sizes = scope.block_sizes(buffer.dims)
        value = scope.insert(tl.BroadcastToOp(value, sizes))
    op = tl.StoreOp(pointers, value, mask)
    op.attributes["tl.comment"] = StringAttr(comment)
    scope.builder.insert(op)


def _pointee(buffer: Buffer) -> Attribute:
    assert buffer.pointer is not None
    assert isinstance(buffer.pointer.type, tl.PtrType)
    return buffer.pointer.type.pointee


def _addresses(
    scope: Scope, buffer: Buffer, axes: Sequence[str]
) -> tuple[SSAValue, SSAValue | None]:
    """Return the pointers of the current slice, and the mask of what is inside."""
    assert buffer.pointer is not None
    pointers, mask = buffer.pointer, None
    for position, dim in enumerate(buffer.dims):
        part = scope.slices[dim]
        if (offsets := part.offsets()) is not None:
            offset = _scaled(scope, buffer, position, offsets, axes)
            pointers = scope.insert(tl.AddPtrOp(pointers, offset))
        if (inside := part.mask()) is not None:
            inside = _placed(scope, dim, inside, axes)
            if mask is not None:
                inside = scope.insert(tl.BinaryOp(BinaryKind.AND, mask, inside))
            mask = inside
    return pointers, mask


def _placed(scope: Scope, dim: str, vector: SSAValue, axes: Sequence[str]) -> SSAValue:
    """Return offsets or a mask of one dimension along its axis of a block."""
    if dim not in axes:
        return vector
    return aligned(scope, Tile(vector, (dim,)), axes)


def _scaled(
    scope: Scope,
    buffer: Buffer,
    position: int,
    offsets: SSAValue,
    axes: Sequence[str],
) -> SSAValue:
    """Return offsets along one axis of the buffer, in elements."""
    value = _placed(scope, buffer.dims[position], offsets, axes)
    inner = buffer.stride_dims[position + 1 :]
    if inner and buffer.elements > MAX_INDEX:
        value = scope.insert(tl.CastOp(value, i64))
    for dim in inner:
        extent = scope.constexprs.extent(dim)
        value = scope.insert(tl.BinaryOp(BinaryKind.MUL, value, extent))
    return value
