"""
Slices of dimensions inside a Triton kernel: where a tile starts and where it ends.

Offsets and masks are emitted at their first use, at the start of the block in which the
slice begins, so that all later ops can use them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block, Operation, SSAValue

from comet.dialects import tl
from comet.dialects.blocks import terminator_of
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.triton.slices import LoopSlice, Slice


class Inserter(ABC):
    """A place in a kernel to which operations are added."""

    @abstractmethod
    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert an operation; return its result, which gets a name."""

    def integer(self, number: int) -> SSAValue:
        """Insert a number of 32 bits."""
        return self.insert(tl.ConstantOp.of(number, i32))

    def binary(
        self,
        kind: BinaryKind,
        lhs: SSAValue,
        rhs: SSAValue | int,
        hint: str | None = None,
    ) -> SSAValue:
        """Insert an operation of two values; a neutral number leaves the first one."""
        if isinstance(rhs, int):
            if rhs == 1 and kind in (BinaryKind.MUL, BinaryKind.FLOORDIV):
                return lhs
            rhs = self.integer(rhs)
        return self.insert(tl.BinaryOp(kind, lhs, rhs), hint)

    def compare(
        self, kind: CompareKind, lhs: SSAValue, rhs: SSAValue, hint: str | None = None
    ) -> SSAValue:
        """Insert a comparison of two values."""
        return self.insert(tl.CmpOp(kind, lhs, rhs), hint)


class Prologue(Inserter):
    """The start of a block, to which operations can still be added."""

    def __init__(self, block: Block):
        self.block = block
        self._last: Operation | None = None

    @classmethod
    def at_end(cls, block: Block) -> Prologue:
        """Return the place after all that a block has, before its terminator."""
        place = cls(block)
        place._last = terminator_of(block).prev_op
        return place

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert `op` after what was added before; return its result."""
        if self._last is not None:
            self.block.insert_op_after(op, self._last)
        elif (first := self.block.first_op) is not None:
            self.block.insert_op_before(op, first)
        else:
            self.block.add_op(op)
        self._last = op
        op.results[0].name_hint = hint
        return op.results[0]

    def insertion_point(self) -> Prologue:
        """
        Return the insertion point after all that was added here, and all that will be.
        """
        point = Prologue(self.block)
        point._last = self._last
        return point


@dataclass
class Constexprs:
    """The constexpr parameters of a kernel, added at their first use."""

    kernel: tl.KernelOp
    blocks: BlocksAttr
    extents: Mapping[str, int]
    """The largest extent of each dimension in the kernel, in elements."""
    _values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def of_part(self, blocks: BlocksAttr) -> Constexprs:
        """Return the parameters for another node of the same kernel."""
        return Constexprs(self.kernel, blocks, self.extents, self._values)

    def named(self, name: str, value: int) -> SSAValue:
        """Return the parameter called `name`; the value too, if nodes differ in it."""
        present = self._values.get(name)
        if present is not None and present.type != tl.ConstexprType.of(value):
            name = f"{name}_{value}"
        if name not in self._values:
            block = self.kernel.body.block
            type = tl.ConstexprType.of(value)
            argument = block.insert_arg(type, len(block.args))
            argument.name_hint = name
            self._values[name] = argument
        return self._values[name]

    def extent(self, dim: str, size: int) -> SSAValue:
        """
        Return the parameter that holds an extent of `dim`, of `size` elements.

        K is the largest extent that the nodes of the kernel have, K_SHARD is smaller,
        such as what one rank has of it, and K_ALL is larger.
        """
        largest = self.extents.get(dim, size)
        if size == largest:
            return self.named(dim, size)
        return self.named(f"{dim}_SHARD" if size < largest else f"{dim}_ALL", size)

    def block(self, dim: str, size: int) -> SSAValue:
        """
        Return the parameter that holds a block size of `dim`.

        The largest one of the node is BLOCK_N, one of 32 elements then BLOCK_N_32.
        """
        sizes = [size for (d, _), size in self.blocks.sizes.items() if d == dim]
        is_largest = size >= max(sizes, default=0)
        return self.named(f"BLOCK_{dim}" + ("" if is_largest else f"_{size}"), size)


@dataclass
class DimSlice:
    """One slice of one dimension: elements `start` to `stop`."""

    dim: str
    shape: Slice
    start: SSAValue | None
    """The first element, an i32; None where the slice is the whole dimension."""
    stop: SSAValue
    """The end, exclusive, an i32 or constexpr."""
    home: Prologue
    constexprs: Constexprs
    _offsets: SSAValue | None = None
    _mask: SSAValue | None = None
    _compared: dict[tuple[CompareKind, int], SSAValue] = field(
        default_factory=dict[tuple[CompareKind, int], SSAValue]
    )

    def offsets(self) -> SSAValue | None:
        """Return the index of each element of a block; None is the scalar 0."""
        if not self.shape.has_axis:
            return self.start
        if self._offsets is None:
            size = self.constexprs.block(self.dim, self.shape.block)
            hint = f"offs_{self.dim.lower()}"
            if self.start is None:
                self._offsets = self.home.insert(tl.ArangeOp(size), hint)
            else:
                steps = self.home.insert(tl.ArangeOp(size))
                add = BinaryKind.ADD
                self._offsets = self.home.binary(add, self.start, steps, hint)
        return self._offsets

    def mask(self) -> SSAValue:
        """Return which elements of a block are in the slice."""
        offsets = self.offsets()
        if self._mask is None:
            first, hint = self._first_or(offsets), f"mask_{self.dim.lower()}"
            self._mask = self.home.compare(CompareKind.LT, first, self.stop, hint)
        return self._mask

    def compared(self, kind: CompareKind, position: int) -> SSAValue:
        """Return how the index of each element compares to a position."""
        if (kind, position) not in self._compared:
            offsets = self._first_or(self.offsets())
            limit = self.home.integer(position)
            self._compared[kind, position] = self.home.compare(kind, offsets, limit)
        return self._compared[kind, position]

    def named_start(self) -> SSAValue | None:
        """Return the first element, with a name: it is used more than once."""
        if self.start is not None and self.start.name_hint is None:
            self.start.name_hint = f"start_{self.dim.lower()}"
        return self.start

    def _first_or(self, offsets: SSAValue | None) -> SSAValue:
        """Return offsets, those of the only element where they are None."""
        return self.home.integer(0) if offsets is None else offsets

    def count(self) -> SSAValue:
        """Return the number of elements in the slice, as an f32 scalar."""
        home = self.home
        if self.shape.full:
            return home.insert(tl.ConstantOp.of(float(self.shape.length), f32))
        remaining = self.stop
        if self.start is not None:
            remaining = home.binary(BinaryKind.SUB, self.stop, self.start)
        count = home.binary(BinaryKind.MIN, remaining, self.shape.length)
        return home.insert(tl.CastOp(count, f32), f"count_{self.dim.lower()}")


def inner_slice(
    outer: DimSlice, loop: LoopSlice, shape: Slice, start: SSAValue, home: Prologue
) -> DimSlice:
    """Return the slice that begins at `start` and that the loop cuts out of `outer`."""
    stop = outer.stop
    if loop.is_bounded:
        size = home.integer(shape.length)
        stop = home.binary(BinaryKind.ADD, start, size)
        if not shape.full:
            stop = home.binary(BinaryKind.MIN, stop, outer.stop)
        stop.name_hint = f"stop_{loop.dim.lower()}"
    return DimSlice(loop.dim, shape, start, stop, home, outer.constexprs)


def step_of(outer: DimSlice, loop: LoopSlice, place: Inserter) -> SSAValue:
    """Return the distance of neighbouring slices: a constexpr, or a number."""
    if loop.is_bounded or loop.block == 1:
        return place.integer(loop.tile)
    return outer.constexprs.block(loop.dim, loop.block)
