"""How a kernel loads and stores the current slice of a tensor in device memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from xdsl.dialects.builtin import StringAttr, i32, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.tl.types import BinaryKind, CompareKind, element_of, shape_of
from comet.passes.triton.lower_to_triton.buffers import (
    MAX_INDEX,
    Buffer,
    Filled,
    Gathered,
    Joined,
    Received,
    Stride,
    TableRows,
)
from comet.passes.triton.lower_to_triton.offsets import Prologue
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    aligned,
    both,
    check_size,
    converted,
    literal,
)
from comet.passes.triton.lower_to_triton.workarounds import (
    before_cast,
    compared_in_block,
)


@dataclass(frozen=True)
class LoadMask:
    """Which elements a load reads from memory, and what it returns for the others."""

    dims: Collection[str]
    """The dimensions along which the elements beyond the end are masked."""
    other: float
    """The value of masked elements."""
    condition: SSAValue | None = None
    """Another mask, of all elements; None admits all."""


def load(
    scope: Scope, buffer: Buffer, element: Attribute, mask: LoadMask, comment: str
) -> Tile:
    """
    Return the current slice of a view: loaded from memory, or computed.

    Raises `PassFailedException` for a received value whose source rank is not known.
    """
    if isinstance(buffer, Received):
        raise PassFailedException(
            f"lower-to-triton: {', '.join(buffer.dims)} of a channel are loaded before "
            "their source is known; let a loop of its own run over the ranks that sent "
            "it"
        )
    if isinstance(buffer, Joined):
        return _load_joined(scope, buffer, element, mask, comment)
    if isinstance(buffer, Filled):
        return _full(scope, buffer, element)
    if buffer.pointer is None:
        return positions(scope, buffer, element)
    return _load_tensor(scope, buffer, mask, comment)


def _load_tensor(scope: Scope, buffer: Buffer, mask: LoadMask, comment: str) -> Tile:
    """Load the current slice of a tensor in memory."""
    buffer = _of_one_source(scope, buffer)
    assert buffer.pointer is not None
    check_size(buffer.dims, scope)
    axes = scope.axes(buffer.dims)
    pointers, admitted = addresses(scope, buffer, axes, mask.dims, mask.condition)
    other = None
    if admitted is not None:
        other = scope.constant(mask.other, _pointee(buffer))
    padding = dict.fromkeys(mask.dims, mask.other)
    gathered = buffer.gathered
    if gathered is not None and gathered.is_remote:
        pointers = _broadcast(scope, pointers, buffer.dims)
        sources = _sources(scope, gathered, axes)
        current, bases = gathered.ranks.rank, gathered.ranks.bases
        op = tl.RemoteLoadOp(pointers, current, sources, bases, admitted, other)
    else:
        op = tl.LoadOp(pointers, admitted, other)
    name = (buffer.pointer.name_hint or "x").removesuffix("_ptr")
    return Tile(scope.insert(op, f"{name}_tile", comment), axes, padding)


def _of_one_source(scope: Scope, buffer: Buffer) -> Buffer:
    """
    Return the message of one source, if every slice is inside the shard of one source.

    Else return the buffer with the messages of all sources.
    """
    gathered = buffer.gathered
    if gathered is None or gathered.shard == 1:
        return buffer
    current = scope.slices[gathered.dim]
    if current.start is None or not current.shape.is_in_one_block(gathered.shard):
        return buffer
    assert buffer.pointer is not None
    source = _divided(scope, gathered, current.start, BinaryKind.FLOORDIV)
    source.name_hint = "source"
    shard = scope.constexprs.extent(gathered.stored, gathered.shard)
    first = scope.binary(BinaryKind.MUL, source, shard)
    if gathered.message is None:
        ranks = gathered.ranks
        here = buffer.pointer, ranks.rank
        there = tl.RebaseAmongOp(*here, source, ranks.bases, ranks.world_size)
    else:
        step = scaled(scope, source, gathered.message, _is_wide(buffer))
        there = tl.AddPtrOp(buffer.pointer, step)
    pointer = scope.insert(there, buffer.pointer.name_hint)
    origins = {**buffer.origins, gathered.dim: first}
    return replace(buffer, pointer=pointer, gathered=None, origins=origins)


def _is_wide(buffer: Buffer) -> bool:
    """Whether offsets in all messages of a buffer need 64 bits."""
    messages = 1 if buffer.gathered is None else buffer.gathered.messages
    return buffer.elements * messages > MAX_INDEX


def _row_pointers(
    scope: Scope, buffer: TableRows, axes: Sequence[str], masked: Collection[str]
) -> SSAValue:
    """
    Return pointers to the rows of a table that ids name.

    Offsets have 64 bits only in a table that is too large for 32 bits.
    """
    assert buffer.pointer is not None
    ids = _load_ids(scope, buffer.ids, buffer.ids_type, masked)
    numbers = aligned(scope, ids, axes) if ids.dims else ids.value
    index = i64 if buffer.elements > MAX_INDEX else i32
    numbers = converted(scope, numbers, index)
    if buffer.first_row:
        first = scope.insert(tl.ConstantOp.of(buffer.first_row, index))
        numbers = scope.binary(BinaryKind.ADD, numbers, first)
    return scope.insert(tl.AddPtrOp(buffer.pointer, scaled(scope, numbers, buffer.row)))


def _load_ids(
    scope: Scope, ids: Buffer, element: Attribute, masked: Collection[str]
) -> Tile:
    """
    Load the ids of rows, once for each slice of their dimensions.

    The load is where the last of these slices begins: before loops over other
    dimensions. Ids that programs of the same launch store are loaded here, behind the
    wait for them.
    """
    slices, loaded = [scope.slices[dim] for dim in ids.dims], scope.memory.loaded_ids
    home = None if ids.of_launch else home_of(scope, ids.dims)
    block = scope.builder.insertion_point.block if home is None else home.block
    key = ids.identity, block, tuple(each.offsets() for each in slices)
    if key not in loaded:
        before = replace(scope, early=home)
        mask = LoadMask([dim for dim in ids.dims if dim in masked], 0.0)
        loaded[key] = load(before, ids, element, mask, "ids").value
    return Tile(loaded[key], scope.axes(ids.dims))


def home_of(scope: Scope, dims: Sequence[str]) -> Prologue:
    """Return the start of the innermost block in which a slice of `dims` begins."""
    homes = [scope.slices[dim].home for dim in dims] or [scope.prologue]
    return max(homes, key=lambda each: _depth(each.block))


def _depth(block: Block) -> int:
    """Return the number of blocks around a block."""
    outer = block.parent_block()
    return 0 if outer is None else 1 + _depth(outer)


def _broadcast(scope: Scope, value: SSAValue, dims: Sequence[str]) -> SSAValue:
    """
    Return the value as a block with all axes.

    Shards of one element are at one address, each on its rank.
    """
    shape = tuple(scope.slices[dim].shape.block for dim in scope.axes(dims))
    if shape_of(value.type) == shape:
        return value
    return scope.insert(tl.BroadcastToOp(value, scope.block_sizes(dims)))


def _load_joined(
    scope: Scope, joined: Joined, element: Attribute, mask: LoadMask, comment: str
) -> Tile:
    """
    Load the current slice of concatenated tensors, each tensor where it is.

    What is beyond the end belongs to the last one.
    """
    axes = scope.axes(joined.dims)
    found: Tile | None = None
    stops = (*joined.firsts[1:], None)
    for buffer, first, stop in zip(joined.inputs, joined.firsts, stops, strict=True):
        ends: list[SSAValue] = []
        if found is not None:
            ends.append(_compared(scope, joined, CompareKind.GE, first))
        if stop is not None:
            ends.append(_compared(scope, joined, CompareKind.LT, stop))
        masks = ends if mask.condition is None else [*ends, mask.condition]
        inside = reduce(partial(both, scope), masks) if masks else None
        ends_mask = replace(mask, condition=inside)
        tile = load(scope, buffer, element, ends_mask, comment)
        if found is not None:
            value = scope.insert(tl.WhereOp(ends[0], tile.value, found.value))
            # Inputs without memory hold their own number beyond the end.
            same_padding = tile.padding == found.padding
            padding = tile.padding if same_padding else dict[str, float]()
            tile = Tile(value, axes, padding)
        found = tile
    assert found is not None
    return found


def _compared(
    scope: Scope, joined: Joined, kind: CompareKind, position: int
) -> SSAValue:
    """Return the mask that compares positions along the joined dimension with one."""
    axes, current = scope.axes(joined.dims), scope.slices[joined.along]
    if joined.along not in axes and (offset := current.offsets()) is not None:
        return compared_in_block(scope, kind, offset, position, joined.dims)
    return placed(scope, joined.along, current.compared(kind, position), axes)


def _full(scope: Scope, filled: Filled, element: Attribute) -> Tile:
    """Return a block of a constant."""
    number, axes = tl.ConstantOp.of(filled.number, element), scope.axes(filled.dims)
    full = tl.FullOp(number.value, scope.block_sizes(filled.dims)) if axes else number
    return Tile(scope.insert(full), axes)


def positions(scope: Scope, buffer: Buffer, element: Attribute) -> Tile:
    """Return the positions of the current slice in the whole dimension."""
    offsets, first = _in_memory(scope, buffer, buffer.dims[0]), buffer.first
    axes = scope.axes(buffer.dims)
    if offsets is None and first is None:
        return Tile(scope.constant(0.0, element), axes)
    if offsets is not None and first is not None:
        first = scope.binary(BinaryKind.ADD, offsets, first)
    position = offsets if first is None else first
    assert position is not None
    if (number := literal(position)) is not None:
        return Tile(scope.constant(number, element), axes)
    if axes and element == element_of(position.type):
        return Tile(position, axes)
    # The variable of a loop may be a Python integer in Triton's interpreter.
    cast = tl.CastOp(before_cast(scope, position, element), element)
    return Tile(scope.insert(cast, None, "compound.index"), axes)


def store(
    scope: Scope,
    buffer: Buffer,
    tile: Tile,
    masked: Collection[str] | None,
    comment: str,
) -> None:
    """
    Store a tile to the current slice of a buffer, and of its copy if it has one.

    `masked` are the dimensions that the mask of a `schedule.copy` names; without them,
    the store is masked where slices are short.
    """
    if buffer.pointer is not None:
        _store_tensor(scope, buffer, tile, masked, comment)
    if buffer.copy is not None:
        store(scope, buffer.copy, tile, masked, comment)


def _store_tensor(
    scope: Scope,
    buffer: Buffer,
    tile: Tile,
    masked: Collection[str] | None,
    comment: str,
) -> None:
    """Store a tile to the current slice of a tensor in memory."""
    axes = scope.axes(buffer.dims)
    if masked is None:
        masked = [dim for dim in buffer.dims if not scope.slices[dim].shape.exact]
    pointers, mask = addresses(scope, buffer, axes, masked, buffer.within)
    value = _broadcast(scope, aligned(scope, tile, axes), buffer.dims)
    op: tl.AtomicAddOp | tl.StoreOp
    if buffer.adds:
        op = tl.AtomicAddOp(_broadcast(scope, pointers, buffer.dims), value, mask)
    else:
        op = tl.StoreOp(pointers, value, mask, buffer.cache)
    op.attributes[tl.COMMENT] = StringAttr(comment)
    scope.builder.insert(op)


def _pointee(buffer: Buffer) -> Attribute:
    assert buffer.pointer is not None
    assert isinstance(buffer.pointer.type, tl.PtrType)
    return buffer.pointer.type.pointee


def addresses(
    scope: Scope,
    buffer: Buffer,
    axes: Sequence[str],
    masked: Collection[str],
    condition: SSAValue | None,
) -> tuple[SSAValue, SSAValue | None]:
    """Return the pointers of the current slice; and its mask, `condition` included."""
    assert buffer.pointer is not None
    pointers, mask = buffer.pointer, None
    if isinstance(buffer, TableRows):
        pointers = _row_pointers(scope, buffer, axes, masked)
    for dim, stride in zip(buffer.dims, buffer.strides, strict=True):
        current = scope.slices[dim]
        if (offsets := _in_memory(scope, buffer, dim)) is not None:
            offsets = placed(scope, dim, offsets, axes)
            for offset in steps_along(scope, buffer, dim, stride, offsets):
                pointers = scope.insert(tl.AddPtrOp(pointers, offset))
        if dim in masked:
            inside = placed(scope, dim, current.mask(), axes)
            mask = inside if mask is None else both(scope, mask, inside)
    if condition is not None:
        mask = condition if mask is None else both(scope, mask, condition)
    return pointers, mask


def _in_memory(scope: Scope, buffer: Buffer, dim: str) -> SSAValue | None:
    """Return the positions of the current slice in memory; None is the scalar 0."""
    offsets, first = scope.slices[dim].offsets(), buffer.shifts.get(dim, 0)
    if first != 0:
        if offsets is None:
            offsets = scope.integer(first)
        else:
            offsets = scope.binary(BinaryKind.ADD, offsets, first)
    if (merged := buffer.merged.get(dim)) is None or offsets is None:
        return offsets
    kind = BinaryKind.MOD if merged.is_inner else BinaryKind.FLOORDIV
    inner = scope.constexprs.extent(*merged.inner)
    return scope.binary(kind, offsets, inner)


def placed(scope: Scope, dim: str, vector: SSAValue, axes: Sequence[str]) -> SSAValue:
    """Return a vector of offsets, or a mask, along the axis of its dimension."""
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
    """Return the terms of the address for offsets along one dimension, in elements."""
    origin = buffer.origins.get(dim)
    if origin is offsets:
        return []
    if origin is not None and stride is not None:
        offsets = scope.binary(BinaryKind.SUB, offsets, origin)
    gathered = buffer.gathered
    wide = _is_wide(buffer)
    if gathered is None or gathered.dim != dim:
        return [] if stride is None else [scaled(scope, offsets, stride, wide)]
    steps: list[SSAValue] = []
    if gathered.message is not None:
        source = _divided(scope, gathered, offsets, BinaryKind.FLOORDIV)
        steps.append(scaled(scope, source, gathered.message, wide))
    if stride is not None and gathered.shard > 1:
        inside = _divided(scope, gathered, offsets, BinaryKind.MOD)
        steps.append(scaled(scope, inside, stride, wide))
    return steps


def _divided(
    scope: Scope, gathered: Gathered, offsets: SSAValue, kind: BinaryKind
) -> SSAValue:
    """Return the source rank of each element, or the index in that rank's shard."""
    if gathered.shard == 1:
        return offsets
    shard = scope.constexprs.extent(gathered.stored, gathered.shard)
    return scope.binary(kind, offsets, shard)


def _sources(scope: Scope, gathered: Gathered, axes: Sequence[str]) -> SSAValue:
    """Return the rank that each element of a block comes from."""
    offsets = scope.slices[gathered.dim].offsets()
    if offsets is None:
        return scope.integer(0)
    sources = _divided(scope, gathered, offsets, BinaryKind.FLOORDIV)
    # Padding belongs to no rank, and every rank has to have an address.
    last = scope.integer(gathered.ranks.world - 1)
    sources = scope.binary(BinaryKind.MIN, sources, last)
    return placed(scope, gathered.dim, sources, axes)


def scaled(
    scope: Scope, value: SSAValue, stride: Stride, wide: bool = False
) -> SSAValue:
    """Return a number of steps in elements; `wide` asks for 64 bits."""
    if stride and wide:
        value = scope.insert(tl.CastOp(value, i64))
    for dim, size in stride:
        extent = scope.constexprs.extent(dim, size)
        value = scope.binary(BinaryKind.MUL, value, extent)
    return value
