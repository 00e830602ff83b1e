"""Lower bounds of the cost of all mappings of a fusion plan, before it is rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.paper.bound import port_cycles, whole_stream
from comet.cost.accelerator.paper.nest import Stream
from comet.cost.estimate import ModelName
from comet.cost.from_ir.bounds import (
    FunctionBound,
    FunctionWork,
    function_work,
    op_cycles,
    placed_prices,
    work_of,
)
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import SystemOp
from comet.dialects.collective.state import States
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import bits_of, bytes_of, iteration_dims, names_of
from comet.passes.analysis.memory_chain import MemoryChain, memory_chain
from comet.passes.schedule.fuse.accelerator.folds import states_in_steps
from comet.passes.schedule.fuse.instance_ops import read_instance_ops
from comet.passes.schedule.fuse.rewrite import FusionPlan
from comet.passes.schedule.tile_tree import (
    Node,
    Spatial,
    Temporal,
    Tree,
    live_outs,
    ops_of,
    reads_of,
)
from comet.passes.search import Cost, higher

NESTS = "nests in turn"
"""The name of the work that `sequential_cycles` counts."""


@dataclass(frozen=True)
class FusionBounds:
    """
    Lower bounds for the mappings of each plan of a function.

    The function is sharded, not fused yet, and has no dead code.
    """

    func: FuncOp
    system: SystemOp
    model: ModelName
    sequential: bool = False
    """Whether mappings are sequential, so that `sequential_cycles` is a bound."""

    def of(self, plan: FusionPlan) -> Cost:
        """
        Return lower bounds of latency (cycles) and energy (pJ) for a plan.

        They count the values that nodes over the clusters read from the root memory, or
        write there, and for sequential mappings under `paper` also `sequential_cycles`.
        """
        nests = tuple(self._nests(plan))
        moves = [move for _, found in nests for move in found]
        read, written = (
            sum(move.size for move in moves if move.writes == writes)
            for writes in (False, True)
        )
        bound = cost_of_bound(self._work.with_crossing(read, written))
        if not self.sequential or self.model != "paper":
            return bound
        cycles = sequential_cycles(self.system, nests)
        return higher(bound, Cost(cycles, latency_by=NESTS))

    @cached_property
    def _work(self) -> FunctionWork:
        return function_work(self.func, self.system, self.model, sharded=True)

    @cached_property
    def _states(self) -> States:
        cores = frozenset(memory_chain(self.system).core_axes)
        return states_in_steps(read_instance_ops(self.func), cores)

    def _nests(self, plan: FusionPlan) -> Iterator[tuple[Spatial, tuple[Move, ...]]]:
        """Yield the nodes over the clusters, with their moves at the root memory."""
        root, axes = memory_chain(self.system).root, self.system.axes
        for node, around in _outermost(plan.trees, None):
            read: dict[SSAValue, Operation] = {}
            for value, op in reads_of(node, plan.aliases):
                if plan.levels.at(value, around) == root:
                    read.setdefault(value, op)
            written = {
                value: value.owner
                for value in live_outs(node, plan.aliases)
                if plan.levels.leaving(value, node, around) == root
            }
            moves = (
                Move(
                    value,
                    _dims(value, op),
                    writes,
                    _global_bytes(value, self._states, axes),
                )
                for writes, values in ((False, read), (True, written))
                for value, op in values.items()
            )
            yield node, tuple(moves)


def cost_of_bound(bound: FunctionBound) -> Cost:
    """Return a bound as a cost of the search."""
    return Cost(
        bound.latency,
        bound.energy,
        latency_by=bound.latency_by,
        energy_by=bound.energy_by,
    )


def sequential_cycles(system: SystemOp, nests: Nests) -> float:
    """
    Return a lower bound of the cycles under `paper` for sequential mappings.

    In these, the children of each node run one after the other, and so do the nests
    over the clusters. Each nest takes at least as long as all its ops and placed
    collectives, and as long as its transfers keep the port of the root memory and the
    network busy.
    """
    hardware, chain = hardware_of(system), memory_chain(system)
    instances, cycles = prod(system.axes.values()), 0.0
    for node, moves in nests:
        ops = tuple(ops_of(node))
        work = sum(price.time for price in placed_prices(ops, "paper"))
        for op in work_of(ops):
            work += op_cycles(op, instances, hardware, sharded=True)
        streams = [move.stream(node, hardware, chain) for move in moves]
        cycles += max(work, float(port_cycles(hardware, streams)))
    return cycles


@dataclass(frozen=True)
class Move:
    """A value that a node over the clusters reads from the root memory, or writes."""

    value: SSAValue
    dims: frozenset[str]
    """The dimensions of the value, and of the op that reads or computes it."""
    writes: bool
    size: float
    """Bytes of the whole value."""

    def stream(self, node: Spatial, hardware: Hardware, chain: MemoryChain) -> Stream:
        """Return the transfer of the whole value to or from the clusters of `node`."""
        bits, value_dims = bits_of(self.value), names_of(self.value)
        clusters, parts = (
            prod(loop.factor for loop in node.loops if loop.dim in dims)
            for dims in (self.dims, value_dims)
        )
        return whole_stream(
            hardware,
            (chain.root, chain.shared),
            self.size * 8 / bits / parts,
            bits,
            (clusters, parts),
            writes=self.writes,
        )


Nests: TypeAlias = Sequence[tuple[Spatial, Sequence[Move]]]
"""The nodes over the clusters, with their moves at the root memory."""


def _dims(value: SSAValue, op: Operation | Block) -> frozenset[str]:
    """Return the dimensions of a value, and of the op if it is a compute op."""
    used = iteration_dims(op) if isinstance(op, ComputeOp) else ()
    return frozenset((*names_of(value), *used))


def _outermost(
    trees: tuple[Tree, ...], around: Node | None
) -> Iterator[tuple[Spatial, Node | None]]:
    """Yield the outermost spatial nodes of trees, with the nodes around them."""
    for tree in trees:
        if isinstance(tree, Spatial):
            yield tree, around
        elif isinstance(tree, Temporal):
            yield from _outermost(tree.children, tree)


def _global_bytes(value: SSAValue, states: States, axes: Mapping[str, int]) -> float:
    """Return the bytes of a value on all instances, replicas counted once."""
    sharded = states[value].sharded if value in states else ()
    return bytes_of(value) * prod(axes[axis] for axis in sharded)
