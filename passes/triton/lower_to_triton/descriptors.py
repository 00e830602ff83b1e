"""
How a kernel loads and stores tiles by tensor descriptor.

See `use-descriptors` and `stage-stores`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from comet.dialects import tl
from comet.dialects.tl.types import BinaryKind, shape_of
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    aligned,
    split_last,
)
from comet.passes.triton.use_descriptors import descriptor_axes


def load_by_descriptor(
    scope: Scope, buffer: Buffer, masked: Collection[str], comment: str
) -> Tile:
    """Read the current slice of a buffer; beyond the end there are zeros."""
    assert buffer.pointer is not None
    axes = scope.axes(buffer.dims)
    extents = dict(zip(buffer.dims, buffer.extents, strict=True))
    described = _Described(scope, buffer, descriptor_axes(extents, axes, masked))
    name = (buffer.pointer.name_hint or "x").removesuffix("_ptr")
    load = tl.DescriptorLoadOp(described.descriptor(f"{name}_desc"), described.first())
    if len(described.axes) == len(axes):
        value = scope.insert(load, f"{name}_tile", comment)
    else:
        block = scope.insert(load, f"{name}_block", comment)
        sizes = scope.block_sizes(buffer.dims)
        value = scope.insert(tl.ReshapeOp(block, sizes), f"{name}_tile")
    return Tile(value, axes, dict.fromkeys(masked, 0.0))


def store_by_descriptor(
    scope: Scope,
    buffer: Buffer,
    tile: Tile,
    masked: Collection[str],
    parts: int,
    comment: str,
) -> None:
    """
    Write the current slice of a buffer, but not beyond the end, in parts of its rows.

    A part is a block of the descriptor: the hardware reads it from shared memory.
    """
    assert buffer.pointer is not None
    axes = scope.axes(buffer.dims)
    extents = dict(zip(buffer.dims, buffer.extents, strict=True))
    described = _Described(scope, buffer, descriptor_axes(extents, axes, masked), parts)
    name = (buffer.pointer.name_hint or "x").removesuffix("_ptr")
    descriptor = described.descriptor(f"{name}_out")
    value = described.with_axes(aligned(scope, tile, axes))
    *outer, first = described.first()
    width = shape_of(value.type)[-1] // parts
    for index, part in enumerate(split_last(scope, value, parts)):
        start = first
        if index:
            shift = scope.integer(index * width)
            start = scope.binary(BinaryKind.ADD, first, shift)
        op = tl.DescriptorStoreOp(descriptor, (*outer, start), part)
        op.attributes[tl.COMMENT] = StringAttr(comment)
        scope.builder.insert(op)


@dataclass(frozen=True)
class _Described:
    """A tensor, as the axes that its descriptor has."""

    scope: Scope
    buffer: Buffer
    axes: Sequence[tuple[str, ...]]
    parts: int = 1
    """The blocks along the last axis that a slice has."""

    def with_axes(self, value: SSAValue) -> SSAValue:
        """Return a tile with the axes of the descriptor."""
        slices = self.scope.slices
        shape = [slices[dims[-1]].shape for dims in self.axes]
        blocks = tuple(part.block if part.has_axis else 1 for part in shape)
        if shape_of(value.type) == blocks:
            return value
        sizes = [self.scope.integer(size) for size in blocks]
        return self.scope.insert(tl.ReshapeOp(value, sizes))

    def first(self) -> list[SSAValue]:
        """Write where the current slice begins along each axis, in elements."""
        return [
            reduce(self._next_index, dims[1:], self._start(dims[0]))
            for dims in self.axes
        ]

    def _next_index(self, index: SSAValue, dim: str) -> SSAValue:
        """Return the index of the slice's first element of `dim`, as rows count it."""
        rows = self.scope.binary(BinaryKind.MUL, index, self._extent(dim))
        return self.scope.binary(BinaryKind.ADD, rows, self._start(dim))

    def _start(self, dim: str) -> SSAValue:
        start = self.scope.slices[dim].named_start()
        return self.scope.integer(0) if start is None else start

    def _extent(self, dim: str) -> SSAValue:
        size = self.buffer.extents[self.buffer.dims.index(dim)]
        return self.scope.constexprs.extent(dim, size)

    def descriptor(self, hint: str) -> SSAValue:
        """
        Return the descriptor for the blocks that the scope has of the tensor.

        It is made at the start of the kernel, once for each size of blocks.
        """
        pointer, descriptors = self.buffer.pointer, self.scope.memory.descriptors
        assert pointer is not None
        slices = self.scope.slices
        sizes = tuple(slices[dims[-1]].shape.block for dims in self.axes)
        key = pointer, (*sizes, self.parts)
        if key not in descriptors:
            shape = [self._product(map(self._extent, dims)) for dims in self.axes]
            strides = [self._stride(dims[-1]) for dims in self.axes[:-1]]
            sizes = [self._block(dims[-1]) for dims in self.axes]
            op = tl.MakeDescriptorOp(pointer, shape, strides, sizes)
            descriptors[key] = self.scope.memory.entry.insert(op, hint)
        return descriptors[key]

    def _stride(self, dim: str) -> SSAValue:
        """Return the distance of neighbours, a product of extents."""
        stride = self.buffer.strides[self.buffer.dims.index(dim)] or ()
        extent = self.scope.constexprs.extent
        return self._product(extent(of, size) for of, size in stride if size > 1)

    def _product(self, numbers: Iterable[SSAValue]) -> SSAValue:
        """Write a product at the start of the kernel."""
        return reduce(partial(self.scope.memory.entry.binary, BinaryKind.MUL), numbers)

    def _block(self, dim: str) -> SSAValue:
        """Return how many elements a block has along a dimension."""
        shape = self.scope.slices[dim].shape
        if self.parts > 1 and dim == self.axes[-1][-1]:
            return self.scope.memory.entry.integer(shape.block // self.parts)
        if shape.has_axis:
            return self.scope.constexprs.block(dim, shape.block)
        return self.scope.memory.entry.integer(1)
