"""How a kernel loads and stores the current slice of a tensor in device memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import StringAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from comet.dialects import tl
from comet.dialects.tl.types import BinaryKind, shape_of
from comet.passes.triton.lower_to_triton.buffers import (
    MAX_INDEX,
    Buffer,
    Gathered,
    Stride,
)
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    add,
    aligned,
    both,
    check_size,
)


def load(
    scope: Scope,
    buffer: Buffer,
    masked: Collection[str],
    neutral: float,
    hint: str,
    comment: str,
) -> Tile:
    """Read the current slice of a buffer; `neutral` is read where it is masked."""
    check_size(buffer.dims, scope)
    axes = scope.axes(buffer.dims)
    pointers, mask = addresses(scope, buffer, axes, masked)
    other = None
    if mask is not None:
        other = scope.constant(neutral, _pointee(buffer))
    padding = dict.fromkeys(masked, neutral)
    gathered = buffer.gathered
    if gathered is not None and gathered.is_remote:
        pointers = _broadcast(scope, pointers, buffer.dims)
        sources = _sources(scope, gathered, axes)
        current, bases = gathered.ranks.rank, gathered.ranks.bases
        op = tl.RemoteLoadOp(pointers, current, sources, bases, mask, other)
    else:
        op = tl.LoadOp(pointers, mask, other)
    return Tile(scope.insert(op, hint, comment), axes, padding)


def _broadcast(scope: Scope, value: SSAValue, dims: Sequence[str]) -> SSAValue:
    """
    Return the value as a block with all axes.

    Shards of one element are at one address, each on its rank.
    """
    shape = tuple(scope.slices[dim].shape.block for dim in scope.axes(dims))
    if shape_of(value.type) == shape:
        return value
    return scope.insert(tl.BroadcastToOp(value, scope.block_sizes(dims)))


def positions(scope: Scope, buffer: Buffer, element: Attribute) -> Tile:
    """Return where the elements of the current slice are in the whole dimension."""
    offsets, first = scope.slices[buffer.dims[0]].offsets(), buffer.first
    axes = scope.axes(buffer.dims)
    if offsets is None and first is None:
        return Tile(scope.constant(0.0, element), axes)
    if offsets is not None and first is not None:
        first = add(scope, offsets, first)
    position = offsets if first is None else first
    assert position is not None
    return Tile(
        scope.insert(tl.CastOp(position, element), None, "compound.index"), axes
    )


def store(
    scope: Scope,
    buffer: Buffer,
    tile: Tile,
    masked: Collection[str] | None,
    comment: str,
) -> None:
    """
    Write a tile to the current slice of a buffer, and of its copy if it has one.

    What is `masked` is said by a copy; other stores are masked where slices are short.
    """
    if buffer.pointer is not None:
        cache, within = buffer.cache, buffer.within
        store_tile(scope, buffer, tile, comment, cache, within, masked)
    if buffer.copy is not None:
        store(scope, buffer.copy, tile, masked, comment)


def store_tile(
    scope: Scope,
    buffer: Buffer,
    tile: Tile,
    comment: str,
    cache: SSAValue | None = None,
    within: SSAValue | None = None,
    masked: Collection[str] | None = None,
) -> None:
    """Write a tile to the current slice of a buffer, only where `within` holds."""
    axes = scope.axes(buffer.dims)
    if masked is None:
        masked = [dim for dim in buffer.dims if not scope.slices[dim].shape.exact]
    pointers, mask = addresses(scope, buffer, axes, masked)
    if within is not None:
        mask = within if mask is None else both(scope, mask, within)
    value = _broadcast(scope, aligned(scope, tile, axes), buffer.dims)
    op = tl.StoreOp(pointers, value, mask, cache)
    op.attributes["tl.comment"] = StringAttr(comment)
    scope.builder.insert(op)


def _pointee(buffer: Buffer) -> Attribute:
    assert buffer.pointer is not None
    assert isinstance(buffer.pointer.type, tl.PtrType)
    return buffer.pointer.type.pointee


def addresses(
    scope: Scope, buffer: Buffer, axes: Sequence[str], masked: Collection[str]
) -> tuple[SSAValue, SSAValue | None]:
    """Return the pointers of the current slice, and the mask along some dimensions."""
    assert buffer.pointer is not None
    pointers, mask = buffer.pointer, None
    for dim, stride in zip(buffer.dims, buffer.strides, strict=True):
        part = scope.slices[dim]
        if (offsets := part.offsets()) is not None:
            offsets = placed(scope, dim, offsets, axes)
            for offset in steps_along(scope, buffer, dim, stride, offsets):
                pointers = scope.insert(tl.AddPtrOp(pointers, offset))
        if dim in masked:
            inside = placed(scope, dim, part.mask(), axes)
            mask = inside if mask is None else both(scope, mask, inside)
    return pointers, mask


def placed(scope: Scope, dim: str, vector: SSAValue, axes: Sequence[str]) -> SSAValue:
    """Return offsets or a mask of one dimension along its axis of a block."""
    if dim not in axes:
        return vector
    return aligned(scope, Tile(vector, (dim,)), axes)


def steps_along(
    scope: Scope,
    buffer: Buffer,
    dim: str,
    stride: Stride | None,
    offsets: SSAValue,
) -> list[SSAValue]:
    """Return what offsets along one dimension add to the address, in elements."""
    origin = buffer.origins.get(dim)
    if origin is offsets:
        return []
    if origin is not None and stride is not None:
        offsets = scope.insert(tl.BinaryOp(BinaryKind.SUB, offsets, origin))
    gathered = buffer.gathered
    wide = buffer.elements * (gathered.messages if gathered else 1) > MAX_INDEX
    if gathered is None or gathered.dim != dim:
        return [] if stride is None else [scaled(scope, offsets, stride, wide)]
    steps: list[SSAValue] = []
    if gathered.message:
        source = _divided(scope, gathered, offsets, BinaryKind.FLOORDIV)
        steps.append(scaled(scope, source, gathered.message, wide))
    if stride is not None and gathered.shard > 1:
        inside = _divided(scope, gathered, offsets, BinaryKind.MOD)
        steps.append(scaled(scope, inside, stride, wide))
    return steps


def _divided(
    scope: Scope, gathered: Gathered, offsets: SSAValue, kind: BinaryKind
) -> SSAValue:
    """Return the source of each element, or its index among what that one has."""
    if gathered.shard == 1:
        return offsets
    shard = scope.constexprs.extent(gathered.stored, gathered.shard)
    return scope.insert(tl.BinaryOp(kind, offsets, shard))


def _sources(scope: Scope, gathered: Gathered, axes: Sequence[str]) -> SSAValue:
    """Return the rank that each element of a block comes from."""
    offsets = scope.slices[gathered.dim].offsets()
    if offsets is None:
        return scope.insert(tl.ConstantOp.of(0, i32))
    sources = _divided(scope, gathered, offsets, BinaryKind.FLOORDIV)
    # Padding belongs to no rank, and every rank has to have an address.
    last = scope.insert(tl.ConstantOp.of(gathered.ranks.world - 1, i32))
    sources = scope.insert(tl.BinaryOp(BinaryKind.MIN, sources, last))
    return placed(scope, gathered.dim, sources, axes)


def scaled(
    scope: Scope, value: SSAValue, stride: Stride, wide: bool = False
) -> SSAValue:
    """Return a number of steps in elements; `wide` asks for 64 bits."""
    if stride and wide:
        value = scope.insert(tl.CastOp(value, i64))
    for dim, size in stride:
        extent = scope.constexprs.extent(dim, size)
        value = scope.insert(tl.BinaryOp(BinaryKind.MUL, value, extent))
    return value
