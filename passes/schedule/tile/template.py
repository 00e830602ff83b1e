"""
A tile tree without factors, and what it becomes with factors.

The tree is lowered once; candidates are numbers (or arrays of them, one element per
candidate) in the lowered `Problem`, never clones of IR. Nodes of one level with the
same kinds of ops have the same loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.cost.accelerator.factors import Loops, with_factors
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import FactorKey, Mappings, StepKey
from comet.cost.accelerator.partial_sums import SumChain, partial_sums, sum_chains
from comet.cost.accelerator.problem import Leaf, Problem, Tile, walk
from comet.cost.from_ir.capacity import Bytes, Layout, Sizes
from comet.cost.from_ir.hardware import hardware_of
from comet.cost.from_ir.mapping import problem_of
from comet.cost.reals import Products, Real
from comet.dialects.arch import SystemOp
from comet.dialects.collective.state import States
from comet.dialects.compound import ContractOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import bits_of, extents_of, merged_extents
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.analysis import needed_combiners, states_around
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import compute_block
from comet.passes.comet.lower_to_comet import lower_function, plan_lowering
from comet.passes.schedule.node_names import nest_number, node_kinds, node_level
from comet.passes.schedule.plan_string import PlanEntry, cuttable, plan_nodes
from comet.passes.schedule.retile import retile, set_loops
from comet.passes.schedule.tile.paths import nested, paths_of

EQUAL_PARTS = 4
"""How many loops of one role change together, at least."""

CLASSES = ("contract", "reduce", "map")
"""The kinds of ops whose nodes have the same loops."""

UNLOOPABLE = {Combiner.FOLD, Combiner.SAME}
"""
The combiners that rule out a loop: partial folds cannot be merged between iterations,
and iterations with the same result repeat work.
"""

Key: TypeAlias = tuple[str, str | None]
"""Level and class of the nodes with the same loops."""

Factor: TypeAlias = tuple[Key, str]
"""A loop: the key of its nodes, and its dimension."""

Values: TypeAlias = Mapping[Factor, NDArray[np.int64]]
"""The factor of each loop, one array element per candidate."""


Use: TypeAlias = tuple[str, int, int, int]
"""An op, the position of a value in it, an axis of the value, and its extent."""

Role: TypeAlias = tuple[str, frozenset[tuple[Use, int]]]
"""The level of a loop, and how often its dimension is used in each way below it."""


@dataclass(frozen=True)
class Template:
    """A tile tree without factors, in IR and as a problem, and its possible loops."""

    func: FuncOp
    system: SystemOp
    nodes: tuple[TemporalOp, ...]
    problem: Problem
    hardware: Hardware
    letters: Mapping[str, str]
    """The problem's name of each dimension."""

    @cached_property
    def keys(self) -> Mapping[TemporalOp, Key]:
        """The key of each node: nodes with one key have the same loops."""
        return _keys(self.nodes)

    @cached_property
    def sum_chains(self) -> tuple[SumChain, ...]:
        """What adds up the result of each operation, whatever its loops."""
        return sum_chains(self.problem)

    @cached_property
    def extents(self) -> Mapping[TemporalOp, Mapping[str, int]]:
        """The extents of each node without any temporal factor."""
        return {
            node: merged_extents((*node.ins, *node.init_args()), node.name)
            for node in self.nodes
        }

    @cached_property
    def loops(self) -> Mapping[Key, tuple[str, ...]]:
        """The dimensions that every node of a key can loop over, outermost first."""
        legal: dict[Key, dict[str, bool]] = {}
        roots = dict.fromkeys(node.outermost for node in self.nodes)
        around = {node: s for root in roots for node, s in states_around(root).items()}
        for node, key in self.keys.items():
            for dim in cuttable(node):
                known = legal.setdefault(key, {})
                legal_so_far = known.get(dim, True)
                known[dim] = legal_so_far and _can_loop(node, dim, around[node])
        return {
            key: tuple(dim for dim, allowed in dims.items() if allowed)
            for key, dims in legal.items()
        }

    @cached_property
    def leaders(self) -> Mapping[Factor, Factor]:
        """
        The first loop with the same role for each loop.

        Loops have one role if they are of one level, and ops of the same kinds and
        extents use their dimensions: those of the equal parts of a long program. With
        fewer than EQUAL_PARTS of them, each has its own.
        """
        alike: dict[Role, list[Factor]] = {}
        for key, dims in self.loops.items():
            uses = _uses([node for node in self.nodes if self.keys[node] == key])
            for dim in dims:
                role = key[0], frozenset(uses[dim].items())
                alike.setdefault(role, []).append((key, dim))
        groups = alike.values()
        return {
            factor: group[0] if len(group) >= EQUAL_PARTS else factor
            for group in groups
            for factor in group
        }

    @cached_property
    def above(self) -> Mapping[Block, tuple[TemporalOp, ...]]:
        """The temporal nodes around each block, outermost first."""
        found: dict[Block, tuple[TemporalOp, ...]] = {self.func.body.block: ()}
        for op in self.func.walk():
            if isinstance(op, NodeOp) and op.parent is not None:
                own = (op,) if isinstance(op, TemporalOp) else ()
                found[op.body.block] = (*found[op.parent], *own)
        return found

    @cached_property
    def extent(self) -> Mapping[Factor, int]:
        """
        The largest factor of each loop, without other factors.

        That is the smallest extent below, where a spatial node may have split more.
        """
        most: dict[Factor, int] = {}
        for node, extents in self.extents.items():
            for key in {self.keys[above] for above in self.above[node.body.block]}:
                for dim, extent in extents.items():
                    most[key, dim] = min(extent, most.get((key, dim), extent))
        return most

    @cached_property
    def layout(self) -> Layout:
        """What memory levels hold together, for any factors."""
        return Layout.of(compute_block(self.func), self.system)

    def rows(self, node: TemporalOp, plan: Mapping[Key, Loops]) -> Loops:
        """Return the loops of `node` under a plan, in the problem's letters."""
        known = self.extents[node]
        loops = plan.get(self.keys[node], ())
        return tuple((self.letters[dim], f) for dim, f in loops if dim in known)

    def entries(self, plan: Mapping[Key, Loops]) -> tuple[PlanEntry, ...]:
        """Return the plan entries for the loops of `plan` above factor 1."""
        found: list[PlanEntry] = []
        for node, key in self.keys.items():
            dims = cuttable(node)
            turning = (
                (dim, n) for dim, n in plan.get(key, ()) if n > 1 and dim in dims
            )
            if loops := tuple(turning):
                found.append(PlanEntry(node.node_name or "", loops))
        return tuple(found)

    @cached_property
    def owners(self) -> Mapping[tuple[int, str], tuple[TemporalOp, ...]]:
        """
        The IR nodes of a node of the problem, for each operation below it.

        Outermost nodes become one in the problem, its root, and so do directly nested
        nodes. Raises PassFailedException if a node is several of the problem.
        """
        leaves = paths_of(self.problem.root, ())
        ops = [op for op in self.func.walk() if isinstance(op, ComputeOp)]
        found: dict[tuple[int, str], tuple[TemporalOp, ...]] = {}
        for (leaf, path), op in zip(leaves, ops, strict=True):
            around = () if op.parent is None else self.above[op.parent]
            groups = tuple(nested(around))
            if around and len(groups) != len(path):
                raise PassFailedException(
                    f"tile: @{around[-1].node_name} would be several nodes of a "
                    "mapping, as its results are at another level than what its body "
                    "computes; give them that level"
                )
            for tile, nodes in zip(path, groups, strict=True):
                found[tile, leaf.operation] = nodes
        return found

    def problem_for(self, plan: Mapping[Key, Loops]) -> Problem:
        """
        Return the problem with the loops of a plan.

        Raises CostError if loops that become those of one node differ in order.
        """
        loops = {
            key: tuple(loop for node in nodes for loop in self.rows(node, plan))
            for key, nodes in self.owners.items()
        }
        values = {(key, dim): n for key, rows in plan.items() for dim, n in rows}
        back = partial_sums(self.sum_chains, partial(self.summed, plan, values))
        return with_factors(self.problem, loops, frozenset(back))

    def summed(
        self,
        plan: Mapping[Key, Loops],
        values: Mapping[Factor, Real],
        tile: int,
        operation: str,
    ) -> list[tuple[str, Real]] | None:
        """Return the loops in the order of a plan that are no fold's, None if open."""
        rows: list[tuple[TemporalOp, str]] = []
        for node in self.owners[tile, operation]:
            key = self.keys[node]
            if key not in plan and self.loops.get(key):
                return None
            rows += [(node, d) for d, _ in plan.get(key, ()) if (key, d) in values]
        rows = [(node, dim) for node, dim in rows if dim in self.extents[node]]
        folded = {dim for node, dim in rows if node.init_args()}
        return [
            (self.letters[dim], values[self.keys[node], dim])
            for node, dim in rows
            if dim not in folded
        ]

    def ordered(self, plan: Mapping[Key, Loops]) -> Problem:
        """
        Return the problem with loops of factor 1 in the orders of a plan.

        Raises CostError as `problem_for` does. Equal orders have one problem.
        """
        orders = {key: tuple((d, 1) for d, _ in loops) for key, loops in plan.items()}
        rows = tuple(orders.items())
        if rows not in self._by_order:
            self._by_order[rows] = self.problem_for(orders)
        return self._by_order[rows]

    @cached_property
    def _by_order(self) -> dict[tuple[tuple[Key, Loops], ...], Problem]:
        return {}


class Candidates:
    """
    A template with many choices of factors at once.

    Products of factors are floating-point numbers: integers would wrap around.
    """

    def __init__(self, template: Template, values: Values):
        self.template = template
        self.values = {key: array.astype(np.float64) for key, array in values.items()}
        self.cuts: dict[Block, dict[str, NDArray[np.float64]]] = {}
        """
        How many tiles each dimension is cut into by the nodes around a block.

        Equal products are one array.
        """
        self._tiles: dict[tuple[int, int], NDArray[np.float64]] = {}
        products = Products()
        for block, nodes in template.above.items():
            cuts: dict[str, NDArray[np.float64]] = {}
            for node in nodes:
                for dim, factor in self.factors(node).items():
                    cut = products.times(cuts[dim], factor) if dim in cuts else factor
                    cuts[dim] = np.asarray(cut)
            self.cuts[block] = cuts

    def factors(self, node: TemporalOp) -> dict[str, NDArray[np.float64]]:
        """Return the factor of each dimension that `node` loops over."""
        key, known = self.template.keys[node], self.template.extents[node]
        return {d: f for (k, d), f in self.values.items() if k == key and d in known}

    def divide(self) -> NDArray[np.bool_]:
        """Return where every factor divides what the nodes around it leave."""
        cuts = {
            (extents.get(dim, 0), id(cut)): cut
            for node, extents in self.template.extents.items()
            for dim, cut in self.cuts[node.body.block].items()
        }
        legal = np.asarray(True)
        for (extent, _), cut in cuts.items():
            legal = legal & (extent % cut == 0)
        return legal

    def multiply(self) -> NDArray[np.bool_]:
        """
        Return where the tiles of contractions are matrices, one batch at a time.

        Of several rows, columns or summed dimensions, tiles have one element of all
        but one.
        """
        legal = np.asarray(True)
        for block, cuts in self.cuts.items():
            for op in block.ops:
                if isinstance(op, ContractOp):
                    extents = merged_extents(op.operands, op.name)
                    for most, dims in zip((0, 1, 1, 1), op.roles, strict=True):
                        long = (extents[dim] > cuts.get(dim, 1) for dim in dims)
                        legal = legal & (sum(long, np.asarray(0)) <= most)
        return legal

    def fit(self) -> NDArray[np.bool_]:
        """Return where every level has room for its values that are alive."""
        sizes = Sizes(self.bytes_of, self.iterations)
        return np.asarray(self.template.layout.spare_bytes(sizes) >= 0)

    def mappings(self, plan: Mapping[Key, Loops]) -> Mappings:
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
        summed = partial(self.template.summed, plan, self.values)
        back = partial_sums(self.template.sum_chains, summed).items()
        return Mappings(problem, factors, steps, {k: np.asarray(v) for k, v in back})

    def bytes_of(self, value: SSAValue) -> Bytes:
        """Return the size of a value, tiled."""
        block = block_of(value)
        cuts = {} if block is None else self.cuts.get(block, {})
        size: Bytes = bits_of(value)
        for dim, extent in extents_of(value).items():
            size = size * (self.tile(extent, cuts[dim]) if dim in cuts else extent)
        return size // 8

    def tile(self, extent: int, cut: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the tiles of an extent, by one of `cuts`; equal ones are one array."""
        key = extent, id(cut)
        if key not in self._tiles:
            self._tiles[key] = extent // cut
        return self._tiles[key]

    def _steps(
        self, leaf: Leaf, cuts: Mapping[str, NDArray[np.float64]]
    ) -> dict[StepKey, NDArray[np.float64]]:
        """Return the sizes of a leaf's tiles, in the dimensions that are cut."""
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


def block_of(value: SSAValue) -> Block | None:
    """Return the block that defines a value."""
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


def make_template(func: FuncOp, system: SystemOp) -> Template:
    """
    Return the template of `func`: a copy without temporal factors, lowered once.

    Raises PassFailedException for what cannot be lowered to the accelerator.
    """
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    copy = module.clone()
    bare = _same_function(copy, func)
    for node in plan_nodes(bare).values():
        set_loops(node, _bare_rows(node))
    retile(bare)
    nodes = tuple(op for op in bare.walk() if isinstance(op, TemporalOp))
    lowered = copy.clone()
    lowered_func = _same_function(lowered, func)
    plan = plan_lowering(lowered_func, system, absorb=False)
    lower_function(lowered_func, plan)
    return Template(
        bare, system, nodes, problem_of(lowered), hardware_of(system), plan.names.dims
    )


def _same_function(module: ModuleOp, func: FuncOp) -> FuncOp:
    """Return the function of a cloned module that has the name of `func`."""
    return next(
        op
        for op in module.body.block.ops
        if isinstance(op, FuncOp) and op.sym_name == func.sym_name
    )


def _uses(nodes: Sequence[TemporalOp]) -> Mapping[str, Counter[Use]]:
    """Return how often each dimension is used in each way by the ops in some nodes."""
    found: dict[str, Counter[Use]] = {}
    for op in chain.from_iterable(node.walk() for node in nodes):
        if isinstance(op, ComputeOp):
            what = " ".join([op.name, *map(str, op.properties.values())])
            for position, value in enumerate((*op.operands, *op.results)):
                for axis, (dim, extent) in enumerate(extents_of(value).items()):
                    use = (what, position, axis, extent)
                    found.setdefault(dim, Counter())[use] += 1
    return found


def _keys(nodes: Sequence[TemporalOp]) -> dict[TemporalOp, Key]:
    """
    Return which nodes have the same factors: those of one level and one class of ops.

    A node of several classes has those of all nodes of its nest and level; if there are
    several nests, each then has its own factors.
    """
    nests = {nest_number(node) for node in nodes}
    classes = {node: node_kinds(node) & set(CLASSES) for node in nodes}
    numbered = len(nests) > 1 and any(len(kinds) > 1 for kinds in classes.values())
    keys: dict[TemporalOp, Key] = {}
    mixed = {_level_and_nest(node) for node, kinds in classes.items() if len(kinds) > 1}
    for node, kinds in classes.items():
        parts = [nest_number(node)] if numbered else []
        parts += kinds if len(kinds) == 1 and _level_and_nest(node) not in mixed else []
        keys[node] = node_level(node), "/".join(parts) or None
    return keys


def _level_and_nest(node: TemporalOp) -> tuple[str, str]:
    """Return the level and the nest of a node."""
    return node_level(node), nest_number(node)


def _bare_rows(node: NodeOp) -> tuple[LoopAttr, ...]:
    """Return the loops of `node` without factors: none, or those of its fold."""
    dims = node.factors if node.init_args() else ()
    return tuple(LoopAttr(dim, 1) for dim in dims)


def _can_loop(node: TemporalOp, dim: str, around: States) -> bool:
    """Return whether the body of `node` can run tile by tile along `dim`."""
    if node.init_args():
        return True
    set_loops(node, (LoopAttr(dim, 1),))
    try:
        return not set(needed_combiners(node, around)) & UNLOOPABLE
    except VerifyException:
        return False
    finally:
        set_loops(node, ())
