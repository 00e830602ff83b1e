"""
Which dimensions of a kernel can be collapsed: runs that are adjacent in memory.

In every value of the kernel that has a dimension of a run, the whole run is adjacent,
in the same order. A loop over one of the dimensions is a loop over all of them, or the
loops over them form a perfect nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.blocks import values_in
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    IndexOp,
    MapOp,
    ReduceOp,
    View,
)
from comet.dialects.compound import YieldOp as FoldYieldOp
from comet.dialects.compound.dims import iteration_dims, joined_extents, names_of
from comet.dialects.compound.gather import scatterings
from comet.dialects.compound.rename import viewed
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.passes.schedule.tile.gpu.space import DOT_BLOCKS

Run: TypeAlias = tuple[str, ...]
"""Dimensions that are next to each other in memory, outermost first."""

_ANY_DIMS = (CastOp, ContractOp, FillOp, FoldYieldOp, MapOp, ReduceOp, YieldOp)
"""Ops whose dimensions follow from their types alone."""


def collapsible_runs(node: SpatialOp) -> tuple[Run, ...]:
    """
    Return the longest runs of dimensions that a kernel can have as one.

    None for a kernel whose results are added to rows.
    """
    if any(True for value in node.outs for _ in scatterings(value)):
        return ()
    values = (*node.ins, *node.outs, *values_in(node.body.block))
    after, before = _neighbours(values)
    fixed = set(_fixed_dims(node))
    following: dict[str, str] = {}
    for dim, others in after.items():
        other = next(iter(others)) if len(others) == 1 else None
        if other is not None and before[other] == {dim}:
            if fixed.isdisjoint((dim, other)) and _loops_agree(node, dim, other):
                following[dim] = other
    starts = (dim for dim in following if dim not in following.values())
    runs = (_run(dim, following) for dim in starts)
    return tuple(run for run in runs if after.keys().isdisjoint(_names(run)))


def _names(run: Run) -> Iterator[str]:
    """Yield the names of dimensions while a run is collapsed, from its end on."""
    return (collapsed_name(run[start:]) for start in range(len(run) - 1))


def larger_blocks(node: SpatialOp, run: Run) -> bool:
    """
    Return whether collapsing a run may give larger blocks, or less padding.

    It does not if the inner dimensions fill the largest blocks alone, or if programs
    take one element at a time, as along batch dimensions of products.
    """
    extents = joined_extents((*node.ins, *node.outs))
    products = (op for op in node.walk() if isinstance(op, ContractOp))
    batch = {dim for op in products for dim in op.roles[0]}
    return run[0] not in batch and any(extents[dim] % DOT_BLOCKS[-1] for dim in run[1:])


def _neighbours(
    values: Iterable[SSAValue],
) -> tuple[Mapping[str, set[str | None]], Mapping[str, set[str | None]]]:
    """Return the dimensions after each dimension, and those before; None at an end."""
    after: dict[str, set[str | None]] = {}
    before: dict[str, set[str | None]] = {}
    for value in values:
        names = names_of(value)
        for index, dim in enumerate(names):
            after.setdefault(dim, set()).add(next(iter(names[index + 1 :]), None))
            before.setdefault(dim, set()).add(names[index - 1] if index else None)
    return after, before


def _fixed_dims(node: SpatialOp) -> Iterator[str]:
    """
    Yield the dimensions of a kernel that cannot be collapsed.

    These are the dimensions of ops with an attribute that may name one, and those of
    views other than renames, which have other strides.
    """
    for value in node.ins:
        if isinstance(viewed(value).owner, View | IndexOp):
            yield from names_of(value)
    for op in node.body.block.walk():
        match op:
            case ExtentOp() | FoldOp():
                yield op.dim.data
            case TemporalOp():
                yield from op.factors if len(op.loops) > 1 else ()
            case _ if not isinstance(op, _ANY_DIMS):
                yield from iteration_dims(op)
            case _:
                pass


def _loops_agree(node: SpatialOp, outer: str, inner: str) -> bool:
    """Return whether the loops of a kernel over two dimensions can be collapsed."""
    grid = list(node.factors)
    if outer in grid or inner in grid:
        pair = grid[grid.index(outer) :][:2] if outer in grid else ()
        return list(pair) == [outer, inner]
    loops = [op for op in node.body.block.walk() if isinstance(op, TemporalOp)]
    around = [op for op in loops if outer in op.factors]
    inside = [op for op in loops if inner in op.factors]
    return len(around) == len(inside) and all(only_loop(op) in inside for op in around)


def only_loop(outer: TemporalOp) -> TemporalOp | None:
    """
    Return the loop that is all that a loop has in its body, None if there is more.

    It yields the results of that loop, which combines them as the outer one does, and
    begins with the same iter_args.
    """
    match list(outer.body.block.ops):
        case [TemporalOp() as inner, YieldOp() as last]:
            pass
        case _:
            return None
    agree = (
        tuple(last.operands) == tuple(inner.outs)
        and outer.combiners == inner.combiners
        and tuple(inner.init_args()) == outer.region_iter_args
        and not (outer.with_args or inner.with_args)
        and _others(outer) == _others(inner)
    )
    return inner if agree else None


_OWN = ("node_name", "loops", "operandSegmentSizes")
"""The properties in which two loops that become one may differ."""


def _others(op: Operation) -> Mapping[str, object]:
    """Return the properties that two loops have to agree in."""
    return {name: each for name, each in op.properties.items() if name not in _OWN}


def _run(first: str, following: Mapping[str, str]) -> Run:
    """Return a dimension and those that follow it."""
    run = [first]
    while run[-1] in following:
        run.append(following[run[-1]])
    return tuple(run)


def collapsed_name(run: Sequence[str]) -> str:
    """Return the name of a run as one dimension: `B` and `M` are `BM`."""
    return ("" if all(len(dim) == 1 for dim in run) else "_").join(run)


def subruns(run: Run) -> Iterator[Run]:
    """Yield a run, and all shorter ones of at least two dimensions in it."""
    for size in range(len(run), 1, -1):
        for start in range(len(run) - size + 1):
            yield run[start : start + size]
