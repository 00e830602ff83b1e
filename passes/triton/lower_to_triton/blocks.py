"""
Block sizes of a Triton kernel: the analysis of `lower-to-triton`.

Triton's blocks have power-of-two extents, and `tl.dot` takes none below 16. A tile of a
dimension becomes the smallest block that holds it. Tiles of one element get no axis at
all, unless a dot pads them. Nothing here changes IR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    joined_extents,
    level_of,
    names_of,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.math import MIN_DOT_EXTENT


@dataclass(frozen=True)
class DotForm:
    """A contraction of two matrices: rows x summed, summed x columns."""

    rows: str
    columns: str
    summed: str


@dataclass(frozen=True)
class BlockPlan:
    """The block size of every tile, and the global extents, of one kernel."""

    extents: Mapping[str, int]
    """The extent of each dimension over the whole problem, in elements."""
    sizes: Mapping[tuple[str, int], int]
    """The block size of each dimension and tile extent."""

    def block(self, dim: str, tile: int) -> int:
        """Return the block size for a tile of `dim`, in elements."""
        return self.sizes.get((dim, tile), power_of_two(tile))

    def block_name(self, dim: str, block: int) -> str:
        """Return the constexpr that holds a block size: BLOCK_N, then BLOCK_N_32."""
        names = sorted({s for (d, _), s in self.sizes.items() if d == dim and s > 1})
        is_largest = not names or block == names[-1]
        return f"BLOCK_{dim}" if is_largest else f"BLOCK_{dim}_{block}"


def power_of_two(extent: int) -> int:
    """Return the smallest power of two that is at least `extent`."""
    return 1 << (extent - 1).bit_length()


def dot_form(op: ContractOp, whole: Mapping[str, int]) -> DotForm | None:
    """
    Return how the contraction is a product of two matrices, None if it is none.

    Tiles of one element do not count, but a dimension that is no larger in `whole`, the
    extents in the whole kernel, may stand for the rows or columns of a vector.
    """
    lhs, rhs, out = (
        {name for name, extent in extents_of(value).items() if extent > 1}
        for value in (op.lhs, op.rhs, op.result)
    )
    summed = (lhs & rhs) - out
    rows = lhs - rhs or _single(op.lhs, op.rhs, whole)
    columns = rhs - lhs or _single(op.rhs, op.lhs, whole)
    if (len(summed), len(rows), len(columns)) != (1, 1, 1) or lhs & rhs & out:
        return None
    return DotForm(rows.pop(), columns.pop(), summed.pop())


def _single(value: SSAValue, other: SSAValue, whole: Mapping[str, int]) -> set[str]:
    """
    Return the dimension in which an operand is a vector, if it is worth padding.

    Triton pipelines loads for a dot, and none for a sum of products. Those of f32 are
    computed one by one, so that padding would be as much work again for every row.
    """
    if isinstance(element_type_of(value), Float32Type):
        return set()
    own = [dim for dim in names_of(value) if dim not in names_of(other)]
    return set([dim for dim in own if whole.get(dim) == 1][-1:])


def plan_blocks(node: SpatialOp) -> BlockPlan:
    """Choose the block sizes for one grid node."""
    minimum: dict[tuple[str, int], int] = {}
    tiles: dict[tuple[str, int], int] = {}
    memory, whole = memory_level(node), global_extents(node)
    for op in node.walk():
        for value in _tiles_of(op):
            if level_of(value) != memory:
                tiles |= {
                    key: power_of_two(key[1]) for key in extents_of(value).items()
                }
        if isinstance(op, ContractOp) and (form := dot_form(op, whole)) is not None:
            extents = extents_of(op.lhs) | extents_of(op.rhs)
            for dim in (form.rows, form.columns, form.summed):
                minimum[dim, extents[dim]] = MIN_DOT_EXTENT
    sizes = {key: max(size, minimum.get(key, 1)) for key, size in tiles.items()}
    return BlockPlan(whole, sizes)


def memory_level(node: SpatialOp) -> str | None:
    """Return the level of device memory: where the results of a grid node live."""
    return level_of(node.outs[0])


def _tiles_of(op: Operation) -> Iterable[SSAValue]:
    """The values that an operation defines, or takes in at its border."""
    return op.tiles if isinstance(op, NodeOp) else op.results


def global_extents(node: SpatialOp) -> dict[str, int]:
    """Return the extent of every dimension that enters or leaves the grid node."""
    return joined_extents((*node.ins, *node.outs))
