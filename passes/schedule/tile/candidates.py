"""Many choices of factors for a template: legality, sizes and mappings as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, SSAValue

from comet.cost.accelerator.mappings import FactorKey, Mappings, StepKey
from comet.cost.accelerator.partial_sums import partial_sums
from comet.cost.accelerator.problem import Leaf, Tile, walk
from comet.cost.from_ir.capacity import Bytes, Sizes
from comet.cost.reals import Products
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import bits_of, extents_of, merged_extents
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.tile.template import (
    Factor,
    Key,
    Plan,
    Template,
    Values,
    factors_of,
)


class Candidates:
    """
    Many choices of factors for a template, as arrays with one element per choice.

    Products of factors are floating-point numbers: integers would overflow.
    """

    def __init__(
        self, template: Template, values: Values | Mapping[Factor, NDArray[np.float64]]
    ):
        self.template = template
        self.values = {
            key: np.asanyarray(array, np.float64) for key, array in values.items()
        }
        self._by_key: dict[Key, dict[str, NDArray[np.float64]]] = {}
        for (key, dim), factor in self.values.items():
            self._by_key.setdefault(key, {})[dim] = factor
        self.cuts: dict[Block, dict[str, NDArray[np.float64]]] = {}
        """
        The number of tiles of each dimension in a block: the product of the factors of
        all nodes around it. Equal products share one array.
        """
        self._tiles: dict[tuple[int, int], NDArray[np.float64]] = {}
        products = Products()
        for block, nodes in template.above.items():
            cuts: dict[str, NDArray[np.float64]] = {}
            for node in nodes:
                for dim, factor in self.factors(node).items():
                    cut = products.times(cuts[dim], factor) if dim in cuts else factor
                    cuts[dim] = np.asanyarray(cut)
            self.cuts[block] = cuts

    def factors(self, node: TemporalOp) -> dict[str, NDArray[np.float64]]:
        """Return the factor of each dimension that `node` loops over."""
        key, extents = self.template.keys[node], self.template.extents[node]
        return {d: f for d, f in self._by_key.get(key, {}).items() if d in extents}

    def factors_divide(self) -> NDArray[np.bool_]:
        """Return where each factor divides the extent that outer nodes leave."""
        cuts = {
            (extents.get(dim, 0), id(cut)): cut
            for node, extents in self.template.extents.items()
            for dim, cut in self.cuts[node.body.block].items()
        }
        legal = np.asarray(True)
        for (extent, _), cut in cuts.items():
            legal = legal & (extent % cut == 0)
        return legal

    def tiles_are_matrices(self) -> NDArray[np.bool_]:
        """
        Return where the operands of every contraction are single matrices.

        A tile then has one element along each batch dimension, and more than one along
        at most one of the row, column and summed dimensions each.
        """
        legal = np.asarray(True)
        for block, cuts in self.cuts.items():
            for op in block.ops:
                if isinstance(op, ContractOp):
                    extents = merged_extents(op.operands, op.name)
                    for limit, dims in zip((0, 1, 1, 1), op.roles, strict=True):
                        long = (extents[dim] > cuts.get(dim, 1) for dim in dims)
                        legal = legal & (sum(long, np.asarray(0)) <= limit)
        return legal

    def fits_levels(self) -> NDArray[np.bool_]:
        """Return where every memory level holds its live values."""
        sizes = Sizes(self.bytes_of, self.iterations)
        return np.asanyarray(self.template.layout.spare_bytes(sizes) >= 0)

    def mappings(self, plan: Plan) -> Mappings:
        """Return the candidates as mappings, in the loop orders of `plan`."""
        factors: dict[FactorKey, NDArray[np.float64]] = {}
        steps: dict[StepKey, NDArray[np.float64]] = {}
        problem, letters = self.template.ordered(plan), self.template.letters
        owners = self.template.owners
        tiles = [n for n in walk(problem.root) if isinstance(n, Tile) and not n.spatial]
        for tile in tiles:
            for position, entry in enumerate(tile.entries):
                nodes = owners[tile.index, entry.tag]
                looped = [loop for node in nodes for loop in self.factors(node).items()]
                loops = {letters[dim]: factor for dim, factor in looped}
                for dim, factor in loops.items():
                    factors[tile.index, position, 0, dim] = factor
            if tile.is_leaf:
                innermost = owners[tile.index, tile.leaf.operation][-1]
                cuts = self.cuts[innermost.body.block]
                named = {letters[dim]: cut for dim, cut in cuts.items()}
                steps |= self._steps(tile.leaf, named)
        loops_of = partial(self.template.loops_outside_folds, plan, self.values)
        back = partial_sums(self.template.sum_chains, loops_of).items()
        return Mappings(problem, factors, steps, {k: np.asanyarray(v) for k, v in back})

    def bytes_of(self, value: SSAValue) -> Bytes:
        """Return the bytes of the tile that a value has in its block."""
        block = block_of(value)
        cuts = {} if block is None else self.cuts.get(block, {})
        size: Bytes = bits_of(value)
        for dim, extent in extents_of(value).items():
            size = size * (self.tile(extent, cuts[dim]) if dim in cuts else extent)
        return size // 8

    def tile(self, extent: int, cut: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return extent // cut; the same array for the same arguments."""
        key = extent, id(cut)
        if key not in self._tiles:
            self._tiles[key] = extent // cut
        return self._tiles[key]

    def _steps(
        self, leaf: Leaf, cuts: Mapping[str, NDArray[np.float64]]
    ) -> dict[StepKey, NDArray[np.float64]]:
        """Return the tile extents of a leaf, along the dimensions that are cut."""
        sizes = {"": dict(leaf.primitive), **leaf.steps}
        loops = {
            (leaf.index, tensor, dim): (size, dim)
            for tensor, dims in sizes.items()
            for dim, size in dims.items()
            if dim in cuts
        }
        tiles = {
            (size, dim): np.maximum(1, self.tile(size, cuts[dim]))
            for size, dim in set(loops.values())
        }
        return {key: tiles[loop] for key, loop in loops.items()}

    def iterations(self, node: NodeOp) -> Bytes:
        """Return how often the body of `node` runs on one instance."""
        turns: Bytes = 1
        if isinstance(node, TemporalOp):
            for factor in self.factors(node).values():
                turns = turns * factor
        return turns


def single(template: Template, plan: Plan) -> Candidates:
    """Return the factors of one plan as the only candidate."""
    values = {factor: np.asarray([n]) for factor, n in factors_of(plan).items()}
    return Candidates(template, values)


def block_of(value: SSAValue) -> Block | None:
    """Return the block that defines a value."""
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner
