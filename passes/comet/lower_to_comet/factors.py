"""Extents, loop orders and accumulation, from the loops of a tile tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.factors import merged_order
from comet.cost.accelerator.partial_sums import Accumulation, accumulation
from comet.cost.reals import Truth
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import merged_extents, names_of
from comet.dialects.errors import OpError
from comet.passes.comet.lower_to_comet.tree import (
    Loops,
    PlacedCollective,
    Spatial,
    Temporal,
)

Factors = Mapping[str, int]


def product_of(loops: Loops) -> dict[str, int]:
    """Return the product of the factors of each dimension."""
    factors: dict[str, int] = {}
    for loop in loops:
        factors[loop.dim] = factors.get(loop.dim, 1) * loop.factor
    return factors


Idle = Mapping[Operation, frozenset[str]]
"""The mesh axes of which only one instance runs an op, if there are any."""


def factors_on_paths(root: Temporal, idle: Idle) -> dict[ComputeOp, dict[str, int]]:
    """Return, for every op, the product of all factors on its path from the root."""
    return {
        op: product_of(busy_loops(loops, op, idle)) for op, loops in _paths(root, ())
    }


def busy_loops(loops: Loops, op: ComputeOp, idle: Idle) -> Loops:
    """Return the loops whose axes `op` is spread over, and those without axes."""
    axes = idle.get(op, frozenset[str]())
    return tuple(loop for loop in loops if loop.axis not in axes)


def _paths(node: Temporal, above: Loops) -> Iterator[tuple[ComputeOp, Loops]]:
    for item in node.items:
        here = (*above, *item.loops)
        if isinstance(item.node, ComputeOp):
            yield item.node, here
        elif isinstance(item.node, Spatial):
            for child in item.node.children:
                if not isinstance(child.node, PlacedCollective):
                    yield from _paths(child.node, (*here, *item.node.loops))


def tile_extents(op: ComputeOp) -> dict[str, int]:
    """Return the extents of one tile of an op, along all of its dimensions."""
    return merged_extents((*op.operands, *op.results), op.name)


@dataclass(frozen=True)
class Extents:
    """The size of every dimension, and how much of it one step of each op covers."""

    sizes: dict[str, int]
    steps: dict[ComputeOp, dict[str, int]]


def extents_for(paths: Mapping[ComputeOp, Factors], outer_sizes: Factors) -> Extents:
    """
    Return all sizes, given those of values outside of the tree.

    One step covers a dimension that an op does not have: its size divided by the
    factors on the op's path. Raises PassFailedException if tiles times factors are not
    exactly the size.
    """
    sizes = dict(outer_sizes)
    for op, path in paths.items():
        for dim, extent in tile_extents(op).items():
            covered = extent * path.get(dim, 1)
            if sizes.setdefault(dim, covered) != covered:
                raise _uneven(op, dim, f"{path.get(dim, 1)} tiles of {extent}", sizes)
    used = [v for op in paths for v in (*op.results, *op.operands)]
    sizes = {dim: sizes[dim] for value in used for dim in names_of(value)}
    steps: dict[ComputeOp, dict[str, int]] = {}
    for op, path in paths.items():
        for dim, size in sizes.items():
            if size % path.get(dim, 1):
                raise _uneven(op, dim, f"{path[dim]} equal tiles", sizes)
        tile_sizes = {dim: size // path.get(dim, 1) for dim, size in sizes.items()}
        steps[op] = tile_sizes | tile_extents(op)
    return Extents(sizes, steps)


def _uneven(op: ComputeOp, dim: str, tiles: str, sizes: Factors) -> OpError:
    return OpError(
        op,
        f"lower-to-comet: '{op.name}' cuts {dim} = {sizes[dim]} into {tiles}; choose "
        "factors that divide, or pad the dimension",
    )


def loop_order(paths: Sequence[Loops], dims: Sequence[str]) -> list[str]:
    """
    Return `dims` in one order, innermost first, that is the order of every path.

    Raises PassFailedException if the paths disagree, or one of them has two separate
    loops over a dimension.
    """
    return innermost_first([_looped(path) for path in paths], dims)


def innermost_first(orders: Sequence[Sequence[str]], dims: Iterable[str]) -> list[str]:
    """
    Return `dims` innermost first, in an order that agrees with all `orders`, which are
    outermost first.

    Dimensions in none of them are innermost. Raises PassFailedException if the orders
    disagree.
    """
    names = list(dims)
    merged, disputed = merged_order(orders, names)
    if disputed:
        raise PassFailedException(
            "lower-to-comet: the nests below one node loop over "
            f"{' and '.join(disputed)} in different orders, and the COMET files give "
            "a node one permutation; order their loops alike"
        )
    return [*(dim for dim in names if dim not in merged), *reversed(merged)]


def _looped(path: Loops) -> list[str]:
    """Return the dimensions of a path, outermost first, each once."""
    dims: list[str] = []
    for loop in path:
        if loop.factor == 1 or dims[-1:] == [loop.dim]:
            continue
        if loop.dim in dims:
            raise PassFailedException(
                f"lower-to-comet: nested temporal nodes loop over {loop.dim} twice "
                "with another loop in between, and the COMET files give a dimension "
                "one loop per node; order the loops so that they meet"
            )
        dims.append(loop.dim)
    return dims


def accumulation_of(
    op: ComputeOp, loops: Loops, above: Truth, *, moves: bool
) -> Accumulation:
    """
    Say where partial results of `op` are read back, given the loops of one node.

    `above` and `moves` as in `accumulation`: an outer loop accumulates in place at this
    level, and the result crosses this node.
    """
    inside = set(tile_extents(op))
    op_loops = [(loop.dim, loop.factor) for loop in loops if loop.dim in inside]
    return accumulation(op_loops, set(names_of(op.results[0])), above, moves=moves)
