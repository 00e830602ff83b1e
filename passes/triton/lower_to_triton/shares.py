"""
How `lower-to-triton` writes programs that share a list of tiles, see `share-tiles`.

The lengths of all sequences tell a program the length of a run, where its own run
begins and stops, and the sequences in it. A loop over these sequences counts the tiles
before each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects import tl
from comet.dialects.blocks import terminator_of
from comet.dialects.compound.dims import element_type_of
from comet.dialects.dataflow.shares import SharesOp, shares_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import power_of_two
from comet.dialects.tl.types import BinaryKind, CompareKind, ReduceKind
from comet.passes.triton.lower_to_triton.buffers import Buffer, row_major
from comet.passes.triton.lower_to_triton.grid import split_program
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    builder_in,
    converted,
    scope_in,
)
from comet.passes.triton.slices import loop_slices


@dataclass(frozen=True)
class Run:
    """The run of a program, in the list of the tiles of all sequences."""

    index: SSAValue
    length: SSAValue
    """The tiles of a run."""
    first: SSAValue
    """The first tile of the run."""
    stop: SSAValue
    """Where the run ends."""
    sequences: tuple[SSAValue, SSAValue]
    """The first sequence of the run, and the one after its last sequence."""
    before: SSAValue
    """The tiles of all sequences before the first one."""


def lower_shares(node: SpatialOp, shares: SharesOp, scope: Scope) -> Scope:
    """
    Write the loop of a program over the sequences of its run.

    Return the scope of its body. Raises PassFailedException for lengths that are no
    vector in memory, and for a launch with other programs than there are runs.
    """
    loops, program = loop_slices(node), scope.program
    others = [loop for loop in loops if loop.dim not in shares.lists]
    counts = [shares.run_count, *(loop.factor for loop in others)]
    launched = 0 if node.programs is None else node.programs.persistent
    if program is None or launched != prod(counts):
        raise OpError(
            node,
            f"lower-to-triton: {launched} programs of {node.name} share tiles, and "
            f"there are {prod(counts)} runs; write persistent = {prod(counts)}",
        )
    index, *indices = split_program(program, counts, scope)
    index.name_hint = "run"
    run = _run_of_program(shares, index, replace(scope, early=scope.prologue))
    body = _loop_over_sequences(shares, run, scope)
    places = dict(zip((loop.dim for loop in others), indices, strict=True))
    body.places = (
        places | {shares.dim: body.prologue.block.args[0]} | _share(shares, run, body)
    )
    return body


def _run_of_program(shares: SharesOp, index: SSAValue, scope: Scope) -> Run:
    """Write the run of a program, which follows from the lengths of all sequences."""
    tiles = _tiles_of_all(shares, scope)
    ends = scope.insert(tl.CumsumOp(tiles, 0), "ends")
    total = scope.insert(tl.ReduceOp(ReduceKind.SUM, tiles, 0), "total")
    most = scope.insert(tl.ReduceOp(ReduceKind.MAX, tiles, 0), "most")
    equal = _ceil_of(scope, total, shares.run_count, 0)
    least = _ceil_of(scope, most, shares.parts - 1, 1)
    length = scope.binary(BinaryKind.MAX, equal, least, "run_length")
    first = scope.binary(BinaryKind.MUL, index, length, "first_tile")
    stop = scope.binary(BinaryKind.ADD, first, length, "stop_tile")

    def total_where(condition: tl.CmpOp, block: SSAValue, hint: str) -> SSAValue:
        chosen = scope.insert(tl.WhereOp(scope.insert(condition), block, zero))
        return scope.insert(tl.ReduceOp(ReduceKind.SUM, chosen, 0), hint)

    zero, one = (scope.integer(n) for n in (0, 1))
    some = scope.binary(BinaryKind.MIN, tiles, one)
    starts = scope.binary(BinaryKind.SUB, ends, tiles)
    name = shares.dim.lower()
    done = tl.CmpOp(CompareKind.LE, ends, first)
    begin = total_where(done, some, f"first_{name}")
    end = total_where(tl.CmpOp(CompareKind.LT, starts, stop), some, f"stop_{name}")
    before = total_where(tl.CmpOp(CompareKind.LE, ends, first), tiles, "before")
    return Run(index, length, first, stop, (begin, end), before)


def _ceil_of(scope: Scope, value: SSAValue, by: int, less: int) -> SSAValue:
    """Return ceil((value - less) / by)."""
    if (more := by - 1 - less) != 0:
        kind = BinaryKind.ADD if more > 0 else BinaryKind.SUB
        value = scope.binary(kind, value, abs(more))
    return scope.binary(BinaryKind.FLOORDIV, value, by)


def _tiles_of_all(shares: SharesOp, scope: Scope) -> SSAValue:
    """Return the tiles of each sequence, a block: 0 beyond the last sequence."""
    size, name = power_of_two(shares.sequences), shares.dim.lower()
    block = scope.constexprs.named(f"BLOCK_{shares.dim}", size)
    offsets = scope.insert(tl.ArangeOp(block), f"offs_{name}")
    if size == shares.sequences:
        return _tiles(shares, offsets, None, scope)
    extent = scope.constexprs.extent(shares.dim, shares.sequences)
    mask = scope.compare(CompareKind.LT, offsets, extent, f"mask_{name}")
    tiles = _tiles(shares, offsets, mask, scope)
    zero = scope.integer(0)
    return scope.insert(tl.WhereOp(mask, tiles, zero), "tiles")


def _tiles(
    shares: SharesOp, sequences: SSAValue, mask: SSAValue | None, scope: Scope
) -> SSAValue:
    """Return the tiles of sequences, one or a block of them."""
    offset, every = shares.offset.value.data, shares.tiles.value.data
    lengths = _loaded(shares, sequences, mask, scope)
    kind = BinaryKind.ADD if offset > 0 else BinaryKind.SUB
    last = scope.binary(kind, lengths, abs(offset)) if offset else lengths
    last.name_hint = "last"
    most, zero = (scope.integer(n) for n in (every, 0))
    index = scope.binary(BinaryKind.FLOORDIV, last, shares.size.value.data)
    seen = scope.binary(BinaryKind.ADD, index, 1)
    seen = scope.binary(BinaryKind.MIN, seen, most)
    sees = scope.compare(CompareKind.GE, last, zero)
    return scope.insert(tl.WhereOp(sees, seen, most), "tiles")


def _loaded(
    shares: SharesOp, sequences: SSAValue, mask: SSAValue | None, scope: Scope
) -> SSAValue:
    """Return the loaded lengths of sequences."""
    buffer = scope.memory.buffers[shares.lengths]
    strides = row_major(dict(zip(buffer.dims, buffer.extents, strict=True)))
    plain = type(buffer) is Buffer and not any(buffer.shifts.values())
    if buffer.pointer is None or not plain or buffer.strides != strides:
        raise OpError(
            shares,
            "lower-to-triton: the lengths of dataflow.shares are no vector in memory; "
            "give an argument of the program",
        )
    addresses = scope.insert(tl.AddPtrOp(buffer.pointer, sequences))
    other = None
    if mask is not None:
        other = scope.constant(0, element_type_of(shares.lengths))
    loaded = scope.insert(tl.LoadOp(addresses, mask, other), "lengths")
    return converted(scope, loaded, i32)


def _loop_over_sequences(shares: SharesOp, run: Run, scope: Scope) -> Scope:
    """Write the loop over the sequences of a run; return the scope of its body."""
    early = replace(scope, early=scope.prologue)
    one = early.integer(1)
    loop = scope.builder.insert(tl.ForOp(*run.sequences, one, [run.before]))
    block = loop.body.block
    block.args[0].name_hint = shares.dim.lower()
    block.args[1].name_hint = "before"
    return scope_in(block, scope)


def _share(shares: SharesOp, run: Run, scope: Scope) -> dict[str, SSAValue]:
    """
    Write the range of tiles that a program has of a sequence; return its part number.

    Also write how many tiles come before the next sequence.
    """
    block = scope.prologue.block
    sequence, before = block.args
    early = replace(scope, early=scope.prologue)
    tiles = _tiles(shares, sequence, None, early)
    after = early.binary(BinaryKind.ADD, before, tiles, "after")
    terminator = terminator_of(block)
    scope.builder.insert(tl.YieldOp(after))
    Rewriter.erase_op(terminator)
    scope.builder = builder_in(block)

    def less(kind: BinaryKind, value: SSAValue, other: SSAValue) -> SSAValue:
        distance = early.binary(BinaryKind.SUB, value, before)
        return early.binary(kind, distance, other)

    one, zero = (early.integer(n) for n in (1, 0))
    first = less(BinaryKind.MAX, run.first, zero)
    end = less(BinaryKind.MIN, run.stop, tiles)
    first_run = early.binary(BinaryKind.FLOORDIV, before, run.length)
    part = early.binary(BinaryKind.SUB, run.index, first_run)
    last = early.binary(BinaryKind.SUB, after, 1)
    last_run = early.binary(BinaryKind.FLOORDIV, last, run.length)
    others = early.binary(BinaryKind.SUB, last_run, first_run)
    count = early.binary(BinaryKind.ADD, others, one)
    names = {first: "first", end: "end", first_run: "first_run", count: "parts"}
    for value, name in (names | {part: shares.part.lower()}).items():
        value.name_hint = name
    scope.numbers = {shares.first: first, shares.end: end, shares.count: count}
    return {shares.part: part}


def check_shares(node: SpatialOp) -> None:
    """Raise PassFailedException if programs share tiles of a node and none arrives."""
    if (shares := shares_of(node)) is not None:
        raise OpError(
            shares,
            "lower-to-triton: programs share tiles of a node at whose end none "
            "arrives; merge the parts by dataflow.arrive",
        )
