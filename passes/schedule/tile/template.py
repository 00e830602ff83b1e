"""
The template of a search: a tile tree without factors, which is lowered once.

A candidate is a set of factors in the lowered `Problem`; the factors of many candidates
are arrays with one element per candidate. IR is never cloned for a candidate. Nodes of
one level with the same kinds of ops have the same loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

from comet.cost.accelerator.factors import Loops, Nests, agree, with_factors
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.partial_sums import SumChain, partial_sums, sum_chains
from comet.cost.accelerator.problem import Leaf, Node, Problem, Tile
from comet.cost.from_ir.capacity import Layout
from comet.cost.from_ir.hardware import hardware_of
from comet.cost.from_ir.mapping import problem_of
from comet.cost.reals import Real
from comet.dialects.arch import SystemOp
from comet.dialects.collective.state import States
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.analysis import needed_combiners, states_around
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import in_copy, module_of
from comet.passes.analysis.levels import compute_block
from comet.passes.comet.lower_to_comet import lower_function, plan_lowering
from comet.passes.schedule.node_names import nest_number, node_kinds, node_level
from comet.passes.schedule.plan_string import PlanEntry, cuttable, plan_nodes
from comet.passes.schedule.retile import retile, set_loops

EQUAL_PARTS = 4
"""The least number of loops of one role that always get the same factor."""

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

Plan: TypeAlias = Mapping[Key, Loops]
"""The loops of each key, outermost first, also those of factor 1."""

FrozenPlan: TypeAlias = tuple[tuple[Key, Loops], ...]
"""The items of a plan, which can be a key of a dictionary."""

Values: TypeAlias = Mapping[Factor, NDArray[np.int64]]
"""The factor of each loop, one array element per candidate."""

AxisUse: TypeAlias = tuple[str, int, int, int]
"""An op, the position of a value in it, an axis of the value, and its extent."""

Path: TypeAlias = tuple[int, ...]
"""Indices of the temporal nodes of a problem around a leaf, outermost first."""

Role: TypeAlias = tuple[str, frozenset[tuple[AxisUse, int]]]
"""The level of a loop, and how often ops below it have each use of its dimension."""


def factors_of(plan: Plan) -> dict[Factor, int]:
    """Return the factor of every loop of a plan."""
    return {(key, dim): n for key, loops in plan.items() for dim, n in loops}


def select(values: Values, chosen: NDArray[np.bool_ | np.intp]) -> Values:
    """Return the chosen candidates, by a mask or by positions."""
    return {factor: array[chosen] for factor, array in values.items()}


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
        """The chain of nodes that sum the result of each operation, for any loops."""
        return sum_chains(self.problem)

    @cached_property
    def extents(self) -> Mapping[TemporalOp, Mapping[str, int]]:
        """The extents of each node without any temporal factor."""
        return {node: node.extents for node in self.nodes}

    @cached_property
    def loops(self) -> Mapping[Key, tuple[str, ...]]:
        """The dimensions that every node of a key can loop over, outermost first."""
        legal: dict[Key, dict[str, bool]] = {}
        roots = dict.fromkeys(node.outermost for node in self.nodes)
        around = {node: s for root in roots for node, s in states_around(root).items()}
        for node, key in self.keys.items():
            for dim in cuttable(node):
                legal_dims = legal.setdefault(key, {})
                legal_so_far = legal_dims.get(dim, True)
                legal_dims[dim] = legal_so_far and _can_loop(node, dim, around[node])
        return {
            key: tuple(dim for dim, allowed in dims.items() if allowed)
            for key, dims in legal.items()
        }

    @cached_property
    def leaders(self) -> Mapping[Factor, Factor]:
        """
        The first loop with the same role for each loop.

        Loops have one role if they are of one level, and ops of the same kinds and
        extents use their dimensions, as in the equal layers of a long program. With
        fewer than EQUAL_PARTS such loops, each is its own leader.
        """
        by_role: dict[Role, list[Factor]] = {}
        for key, dims in self.loops.items():
            uses = _uses([node for node in self.nodes if self.keys[node] == key])
            for dim in dims:
                role = key[0], frozenset(uses[dim].items())
                by_role.setdefault(role, []).append((key, dim))
        groups = by_role.values()
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
                inner = (op,) if isinstance(op, TemporalOp) else ()
                found[op.body.block] = (*found[op.parent], *inner)
        return found

    @cached_property
    def extent(self) -> Mapping[Factor, int]:
        """
        The largest factor of each loop if all other factors are 1.

        It is the smallest extent of the dimension at or below the nodes of the loop: a
        spatial node below may have split it.
        """
        largest: dict[Factor, int] = {}
        for node, extents in self.extents.items():
            for key in {self.keys[above] for above in self.above[node.body.block]}:
                for dim, extent in extents.items():
                    largest[key, dim] = min(extent, largest.get((key, dim), extent))
        return largest

    @cached_property
    def layout(self) -> Layout:
        """Which values each memory level holds at the same time, for any factors."""
        return Layout.of(compute_block(self.func), self.system)

    def loops_of(self, node: TemporalOp, plan: Plan) -> Loops:
        """Return the loops of `node` under a plan, in the problem's letters."""
        extents = self.extents[node]
        loops = plan.get(self.keys[node], ())
        return tuple((self.letters[dim], f) for dim, f in loops if dim in extents)

    def entries(self, plan: Plan) -> tuple[PlanEntry, ...]:
        """Return the plan entries for the loops of `plan` above factor 1."""
        found: list[PlanEntry] = []
        for node, key in self.keys.items():
            dims = cuttable(node)
            planned = plan.get(key, ())
            if loops := tuple((dim, n) for dim, n in planned if n > 1 and dim in dims):
                found.append(PlanEntry(node.node_name or "", loops))
        return tuple(found)

    @cached_property
    def owners(self) -> Mapping[tuple[int, str], tuple[TemporalOp, ...]]:
        """
        The nodes of the tile tree that each node of the problem stands for.

        By the node's index and an operation below it. Outermost nodes become the root
        of the problem, and directly nested nodes one node. Raises PassFailedException
        if a node of the tree would become several nodes of the problem.
        """
        leaves = _paths_of(self.problem.root, ())
        ops = [op for op in self.func.walk() if isinstance(op, ComputeOp)]
        found: dict[tuple[int, str], tuple[TemporalOp, ...]] = {}
        for (leaf, path), op in zip(leaves, ops, strict=True):
            around = () if op.parent is None else self.above[op.parent]
            groups = tuple(_nested(around))
            if around and len(groups) != len(path):
                raise OpError(
                    op,
                    f"tile: @{around[-1].node_name} would be several nodes of a "
                    "mapping, as its results are at another level than what its body "
                    "computes; give them that level",
                )
            for tile, nodes in zip(path, groups, strict=True):
                found[tile, leaf.operation] = nodes
        return found

    def problem_for(self, plan: Plan) -> Problem:
        """
        Return the problem with the loops of a plan.

        Raises CostError if loops that become those of one node differ in order.
        """
        loops_of = partial(self.loops_outside_folds, plan, factors_of(plan))
        back = partial_sums(self.sum_chains, loops_of)
        return with_factors(self.problem, self._nests(plan), frozenset(back))

    def agrees(self, plan: Plan) -> bool:
        """
        Return whether loops that become those of one node have one order.

        That holds for all plans with these orders of loops, whatever their factors are.
        """
        return agree(self.problem, self._nests(plan))

    def _nests(self, plan: Plan) -> Nests:
        """Return the loops of a plan in the nodes of the problem."""
        return {
            key: tuple(loop for node in nodes for loop in self.loops_of(node, plan))
            for key, nodes in self.owners.items()
        }

    def loops_outside_folds(
        self,
        plan: Plan,
        values: Mapping[Factor, Real],
        tile: int,
        operation: str,
    ) -> list[tuple[str, Real]] | None:
        """
        Return the loops of a node of the problem for one operation, without folds.

        `tile` is the index of the node. Loops are (dimension, factor) in the order of
        the plan; None if the plan does not have all of them yet.
        """
        found: list[tuple[Key, str, bool]] = []
        for key, dims, folds in self._owning[tile, operation]:
            if key not in plan and self.loops.get(key):
                return None
            plan_dims = (dim for dim, _ in plan.get(key, ()) if (key, dim) in values)
            found += [(key, dim, folds) for dim in plan_dims if dim in dims]
        folded = {dim for _, dim, folds in found if folds}
        return [
            (self.letters[dim], values[key, dim])
            for key, dim, _ in found
            if dim not in folded
        ]

    @cached_property
    def _owning(
        self,
    ) -> Mapping[tuple[int, str], Sequence[tuple[Key, Mapping[str, int], bool]]]:
        """The key and extents of each of `owners`, and whether it is a fold."""
        return {
            place: [
                (self.keys[node], self.extents[node], bool(node.init_args()))
                for node in nodes
            ]
            for place, nodes in self.owners.items()
        }

    def ordered(self, plan: Plan) -> Problem:
        """
        Return the problem with the loop orders of a plan, and all factors 1.

        It is made once for each set of orders. Raises CostError as `problem_for`.
        """
        orders = {key: tuple((d, 1) for d, _ in loops) for key, loops in plan.items()}
        frozen = tuple(orders.items())
        if frozen not in self._by_order:
            self._by_order[frozen] = self.problem_for(orders)
        return self._by_order[frozen]

    @cached_property
    def _by_order(self) -> dict[FrozenPlan, Problem]:
        return {}


def make_template(func: FuncOp, system: SystemOp) -> Template:
    """
    Return the template of `func`: a copy without temporal factors, lowered once.

    Raises PassFailedException for what cannot be lowered to the accelerator.
    """
    bare = in_copy(func)
    loops = {node: _bare_loops(node) for node in plan_nodes(bare).values()}
    if any(tuple(node.loops) != wanted for node, wanted in loops.items()):
        for node, wanted in loops.items():
            set_loops(node, wanted)
        retile(bare)
    nodes = tuple(op for op in bare.walk() if isinstance(op, TemporalOp))
    lowered = in_copy(bare)
    module, plan = module_of(lowered), plan_lowering(lowered, system, absorb=False)
    lower_function(lowered, plan)
    problem = problem_of(module)
    hardware, letters = hardware_of(system), plan.names.dims
    return Template(bare, system, nodes, problem, hardware, letters)


def _nested(nodes: Sequence[TemporalOp]) -> Iterator[tuple[TemporalOp, ...]]:
    """Yield nodes, outermost first, grouped with the nodes nested in them."""
    group: tuple[TemporalOp, ...] = ()
    for node in nodes:
        if group and node.parent_op() is not group[-1]:
            yield group
            group = ()
        group = (*group, node)
    if group:
        yield group


def _paths_of(node: Node, path: Path) -> Iterator[tuple[Leaf, Path]]:
    """Yield each leaf below `node`, with the temporal nodes around it."""
    if isinstance(node, Leaf):
        yield node, path
    elif isinstance(node, Tile):
        inner = path if node.spatial else (*path, node.index)
        for child in node.children:
            yield from _paths_of(child, inner)


def _uses(nodes: Sequence[TemporalOp]) -> Mapping[str, Counter[AxisUse]]:
    """Return how often ops in some nodes have each use of each dimension."""
    found: dict[str, Counter[AxisUse]] = {}
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
    Return the key of each node: its level, and the class of its ops.

    A node with ops of several classes shares one key with all nodes of its nest and
    level; if there are several nests, keys then also have the number of the nest.
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


def _bare_loops(node: NodeOp) -> tuple[LoopAttr, ...]:
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
