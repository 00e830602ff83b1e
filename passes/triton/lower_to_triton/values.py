"""
Values inside a Triton kernel: blocks in registers, and tensors in device memory.

A block has an axis for each dimension of its type whose tiles have more than one
element, in the order of the type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.builder import Builder
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.tl.types import BinaryKind, element_of
from comet.passes.triton.lower_to_triton.ranks import RankParameters
from comet.passes.triton.lower_to_triton.slices import Constexprs, DimSlice, Prologue

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


Stride = tuple[tuple[str, int], ...]
"""
The extents whose product is the distance of neighbours, in elements.

Each is that of the tensor in memory: nodes, and ranks, may have less of a dimension.
"""


def row_major(extents: Mapping[str, int]) -> tuple[Stride, ...]:
    """Return the strides of a tensor that has these extents in memory."""
    inner = tuple(extents.items())
    return tuple(inner[axis + 1 :] for axis in range(len(inner)))


@dataclass(frozen=True)
class Gathered:
    """What is separate for each rank: elements of one dimension, by their source."""

    dim: str
    shard: int
    """How many elements of the dimension a rank has."""
    stored: str
    """The dimension's name where it is stored."""
    message: Stride
    """The size of what one rank sent; empty where it is in that rank's memory."""
    ranks: RankParameters

    @property
    def is_remote(self) -> bool:
        """Whether every source is loaded from its own memory."""
        return not self.message

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
    """The first of the positions along a dimension, where that is not 0."""
    cache: SSAValue | None = None
    """How stores treat caches, where other programs of the launch read them."""
    within: SSAValue | None = None
    """Where the program stores here; always if None. Others store the same tiles."""
    copy: Buffer | None = None
    """What gets all tiles that are stored here as well."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)

    def renamed(self, renaming: Mapping[str, str]) -> Buffer:
        """Return the same memory under other dimension names."""
        gathered = self.gathered
        return replace(
            self,
            dims=tuple(renaming[dim] for dim in self.dims),
            strides=tuple(_renamed(stride, renaming) for stride in self.strides),
            origins={renaming[dim]: value for dim, value in self.origins.items()},
            gathered=gathered and replace(gathered, dim=renaming[gathered.dim]),
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


@dataclass(frozen=True)
class Owner:
    """The rank that has the current slice of a dimension, or gets it."""

    rank: SSAValue
    first: SSAValue
    """The first element of its shard."""


@dataclass(frozen=True)
class GridIndex:
    """Which of `count` slices of a dimension the program works on."""

    dim: str
    index: SSAValue
    count: int


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
    ranks: RankParameters | None = None
    """What the kernel knows of ranks, if it runs on several."""
    program: SSAValue | None = None
    """The number of the program among those of its rank and node."""
    grid: Sequence[GridIndex] = ()
    """The program's place along each row of the launch grid."""
    owners: dict[str, Owner] = field(default_factory=dict[str, Owner])
    """Whose share the slice is, of dimensions that ranks have been given in turn."""

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
        return tuple(dim for dim in dims if self.slices[dim].shape.has_axis)

    def block_sizes(self, dims: Sequence[str]) -> list[SSAValue]:
        """Return the constexprs of a block's shape."""
        return [
            self.constexprs.block(dim, self.slices[dim].shape.block)
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


def scope_in(block: Block, scope: Scope) -> Scope:
    """Return a scope whose operations go before the terminator of `block`."""
    last = block.last_op
    assert last is not None
    return replace(
        scope,
        builder=Builder(InsertPoint.before(last)),
        prologue=Prologue(block),
        slices=dict(scope.slices),
        values=dict(scope.values),
        owners=dict(scope.owners),
    )


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


def literal(value: SSAValue) -> float | None:
    """Return the number that a constant is, None for other values."""
    if isinstance(constant := value.owner, tl.ConstantOp):
        return float(constant.value.value.data)
    return None


def converted(
    scope: Scope,
    value: SSAValue,
    element: Attribute,
    hint: str | None = None,
    comment: str | None = None,
) -> SSAValue:
    """Return the value with an element type; a constant stays one."""
    if element_of(value.type) == element:
        return value
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
    part = scope.slices[dim]
    is_neutral = part.shape.exact or tile.padding.get(dim) == neutral
    if is_neutral and not (always and part.offsets() is not None):
        return tile
    mask = part.mask()
    if dim in tile.dims:
        mask = aligned(scope, Tile(mask, (dim,)), tile.dims)
    other = scope.constant(neutral, tile.value.type)
    value = scope.insert(tl.WhereOp(mask, tile.value, other))
    return Tile(value, tile.dims, {**tile.padding, dim: neutral})


def check_size(dims: Sequence[str], scope: Scope) -> None:
    """Raise `PassFailedException` where a block is larger than Triton's limit."""
    count = math.prod(scope.slices[dim].shape.block for dim in dims)
    if count > MAX_ELEMENTS:
        shape = " x ".join(f"{dim}={scope.slices[dim].shape.block}" for dim in dims)
        raise PassFailedException(
            f"lower-to-triton: a block of {shape} has {count} elements, Triton takes "
            f"{MAX_ELEMENTS}; choose smaller tiles"
        )


def add(scope: Scope, value: SSAValue, other: SSAValue) -> SSAValue:
    """Return the sum of two values."""
    return scope.insert(tl.BinaryOp(BinaryKind.ADD, value, other))


def both(scope: Scope, mask: SSAValue, other: SSAValue) -> SSAValue:
    """Return where two masks hold."""
    return scope.insert(tl.BinaryOp(BinaryKind.AND, mask, other))
