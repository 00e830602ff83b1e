"""
Values inside a Triton kernel, and the scopes in which they are defined.

A block has an axis for each dimension of its type whose tiles have more than one
element, in the order of the type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.builder import Builder
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.blocks import terminator_of
from comet.dialects.tl.types import BinaryKind, element_of, shape_of
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.memory import KernelMemory
from comet.passes.triton.lower_to_triton.offsets import (
    Constexprs,
    DimSlice,
    Inserter,
    Prologue,
)
from comet.passes.triton.lower_to_triton.ranks import RankParameters
from comet.passes.triton.slices import RankLoops

MAX_ELEMENTS = 2**20
"""Triton refuses blocks of more elements."""
NO_RANK_LOOPS = RankLoops()


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
class Scope(Inserter):
    """The insertion point in a kernel, and the values and slices that exist there."""

    builder: Builder
    prologue: Prologue
    constexprs: Constexprs
    slices: dict[str, DimSlice]
    memory: KernelMemory
    level: str | None = None
    """The level of device memory."""
    extents: Mapping[str, int] = field(default_factory=dict[str, int])
    """The extent of each dimension that enters or leaves the grid node."""
    over_ranks: RankLoops = NO_RANK_LOOPS
    """The loops over ranks of the grid node."""
    values: dict[SSAValue, Tile | Buffer] = field(
        default_factory=dict[SSAValue, "Tile | Buffer"]
    )
    ranks: RankParameters | None = None
    """The rank and the symmetric heap, if the kernel runs on several ranks."""
    group: RankParameters | None = None
    """The same for the programs of a group, if programs of one GPU exchange."""
    program: SSAValue | None = None
    """The number of the program among those of its rank and node."""
    places: Mapping[str, SSAValue] | None = None
    """
    The index of the program along each dimension, if the program id does not give it:
    in a node that the last program to arrive runs, and for shared lists of tiles.
    """
    numbers: Mapping[SSAValue, SSAValue] = field(
        default_factory=dict[SSAValue, SSAValue]
    )
    """The computed results of `dataflow.shares`, which is outside of nodes."""
    grid: Sequence[GridIndex] = ()
    """The index of the program along each loop of the grid node."""
    targets: Mapping[SSAValue, Buffer | None] = field(
        default_factory=dict[SSAValue, "Buffer | None"]
    )
    """The memory for each value that the node yields; None for a value on the chip."""
    accumulators: Mapping[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """The accumulators of yielded values, which an inner node continues."""
    early: Prologue | None = None
    """An earlier place at which operations are inserted, in place of `builder`."""
    owners: dict[str, Owner] = field(default_factory=dict[str, Owner])
    """For dimensions with a loop over ranks, the rank whose shard the slice is."""
    true: frozenset[SSAValue] = frozenset()
    """The conditions that are true in all iterations of the loop."""

    def insert(
        self, op: Operation, hint: str | None = None, comment: str | None = None
    ) -> SSAValue:
        """Insert an operation with one result; return the result."""
        if self.early is None:
            self.builder.insert(op)
        else:
            self.early.insert(op)
        if comment is not None:
            op.attributes[tl.COMMENT] = StringAttr(comment)
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
        """Return the block of `value`; raises PassFailedException for memory."""
        found = self.values[value]
        if isinstance(found, Buffer):
            raise PassFailedException(
                f"lower-to-triton: {value.type} is used in device memory, without a "
                "load; load it at the border of a node first"
            )
        return found

    def constant(self, number: float, type: Attribute) -> SSAValue:
        """Return a scalar constant."""
        return self.insert(tl.ConstantOp.of(number, element_of(type)))


def builder_in(block: Block) -> Builder:
    """Return a builder whose operations go before the terminator of `block`."""
    return Builder(InsertPoint.before(terminator_of(block)))


def scope_in(block: Block, scope: Scope) -> Scope:
    """Return a scope whose operations go before the terminator of `block`."""
    return replace(
        scope,
        builder=builder_in(block),
        prologue=Prologue(block),
        slices=dict(scope.slices),
        values=dict(scope.values),
        owners=dict(scope.owners),
    )


def aligned(scope: Scope, tile: Tile, dims: Sequence[str]) -> SSAValue:
    """Return the block with its axes as in `dims`, of extent 1 where it lacks one."""
    present = [dim for dim in dims if dim in tile.dims]
    value = tile.value
    if tuple(present) != tile.dims:
        order = [tile.dims.index(dim) for dim in present]
        value = scope.insert(tl.PermuteOp(value, order))
    missing = [axis for axis, dim in enumerate(dims) if dim not in present]
    if not present or not missing:
        return value
    return scope.insert(tl.ExpandDimsOp(value, missing))


def literal(value: SSAValue) -> float | None:
    """Return the number that a constant is, None for other values."""
    if isinstance(constant := value.owner, tl.ConstantOp):
        return float(constant.number)
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
        return scope.constant(constant.number, element)
    return scope.insert(tl.CastOp(value, element), hint, comment)


def masked(
    scope: Scope, tile: Tile, dim: str, neutral: float, always: bool = False
) -> Tile:
    """
    Return the tile with `neutral` in all elements beyond the end of `dim`.

    `always` asks for the selection even where it changes nothing.
    """
    current = scope.slices[dim]
    is_neutral = current.shape.exact or tile.padding.get(dim) == neutral
    if is_neutral and not (always and current.offsets() is not None):
        return tile
    mask = current.mask()
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


def both(scope: Scope, mask: SSAValue, other: SSAValue) -> SSAValue:
    """Return where two masks hold."""
    return scope.binary(BinaryKind.AND, mask, other)


def split_last(scope: Scope, value: SSAValue, parts: int) -> Iterator[SSAValue]:
    """
    Yield equal `parts` of the last axis of a block, in order.

    A half is an index of a new axis of two, which `tl.split` takes apart: registers do
    not change threads if the layout has both halves in one.
    """
    if parts == 1:
        yield value
        return
    *outer, last = shape_of(value.type)
    sizes = [scope.integer(size) for size in (*outer, 2, last // 2)]
    axes = range(len(outer))
    pairs = scope.insert(tl.ReshapeOp(value, sizes))
    order = (*axes, len(outer) + 1, len(outer))
    split = tl.SplitOp(scope.insert(tl.PermuteOp(pairs, order)))
    scope.builder.insert(split)
    for half in (split.left, split.right):
        half.name_hint = f"{value.name_hint or 'x'}_half"
        yield from split_last(scope, half, parts // 2)
