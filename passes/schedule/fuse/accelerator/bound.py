"""What the mappings of a fusion plan cost at least, before ops are nested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from comet.cost.estimate import ModelName
from comet.cost.from_ir.bounds import program_bound
from comet.dialects.arch import SystemOp
from comet.dialects.collective.state import States
from comet.dialects.compound.dims import bytes_of
from comet.passes.analysis.memory_chain import memory_chain
from comet.passes.schedule.fuse.accelerator.folds import states_in_steps
from comet.passes.schedule.fuse.program import read_program
from comet.passes.schedule.fuse.rewrite import FusionPlan
from comet.passes.schedule.tile_tree import (
    Node,
    Spatial,
    Temporal,
    Tree,
    live_outs,
    reads_of,
)
from comet.passes.search import Cost


def fusion_bound(
    func: FuncOp, system: SystemOp, plan: FusionPlan, model: ModelName
) -> Cost:
    """
    Return the least latency (cycles) and energy (pJ) of the mappings of a plan.

    What each node over the clusters reads from the root memory, and what it writes
    there, crosses its port. `func` is not fused yet, and has no dead code.
    """
    chain, program, axes = memory_chain(system), read_program(func), system.axes
    states = states_in_steps(program, frozenset(chain.core_axes))
    read = written = 0.0
    for node, around in _outermost(plan.trees, None):
        entering = dict.fromkeys(value for value, _ in reads_of(node, plan.aliases))
        for value in entering:
            if plan.levels.at(value, around) == chain.root:
                read += _whole_bytes(value, states, axes)
        for value in live_outs(node, plan.aliases):
            if plan.levels.leaving(value, node, around) == chain.root:
                written += _whole_bytes(value, states, axes)
    return Cost(*program_bound(func, system, model, (read, written)))


def _outermost(
    trees: tuple[Tree, ...], around: Node | None
) -> Iterator[tuple[Spatial, Node | None]]:
    """Yield the outermost spatial nodes of trees, with the nodes around them."""
    for tree in trees:
        if isinstance(tree, Spatial):
            yield tree, around
        elif isinstance(tree, Temporal):
            yield from _outermost(tree.children, tree)


def _whole_bytes(value: SSAValue, states: States, axes: Mapping[str, int]) -> float:
    """Return the bytes of all different shards of a value; arguments are whole."""
    sharded = states[value].sharded if value in states else ()
    return bytes_of(value) * prod(axes[axis] for axis in sharded)
