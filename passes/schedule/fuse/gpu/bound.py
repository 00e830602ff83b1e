"""
A lower bound of the time of a kernel, before it is built and its tiles are chosen.

It is the price of the least work, for all blocks of the dimensions that programs split.
Along the others a program loads whole values and computes whole products, with any
blocks of its loops: so few large tiles leave multiprocessors idle or fill the
registers, and many small ones load the same values again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import inf, isfinite, prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue
from xdsl.utils.bitwise_casts import is_power_of_two

from comet.cost.from_ir.products import ReadProduct, summary_of_products
from comet.cost.gpu.capacity import may_fit
from comet.cost.gpu.clusters import block_of, cluster_sizes
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import (
    kernel_time,
    occupancy_of,
    product_rate,
    waiting_time,
    wave_count,
)
from comet.cost.gpu.registers import REGISTER, register_bound
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import times_spilled
from comet.cost.gpu.work import KernelWork, Loops, MovedBytes, Operations, ProgramNeeds
from comet.cost.reals import Real, larger, longest, total
from comet.cost.reals import product as product_of
from comet.dialects.compound.dims import (
    bits_of,
    bytes_of,
    ceil_div,
    extents_of,
    joined_extents,
    names_of,
)
from comet.dialects.schedule.attributes import power_of_two
from comet.passes.schedule.fuse.gpu.groups import Group, Values
from comet.passes.schedule.fuse.gpu.least_work import least_fraction, vector_ops
from comet.passes.schedule.fuse.gpu.op_facts import (
    Extents,
    Facts,
    OpFacts,
    VectorOp,
    slice_of,
    union,
)
from comet.passes.schedule.fuse.gpu.plan import LoopNest, grid_over
from comet.passes.schedule.fuse.gpu.scatters import computed, without_scatters
from comet.passes.schedule.tile.gpu.space import (
    ALL_WARPS,
    STAGES,
    block_sizes,
    may_have_tiling,
    smallest_blocks,
)

ROUNDED = 1 - 1e-12
"""A factor for rounding errors: prices add up the same terms in another order."""

_Additions: TypeAlias = "defaultdict[Extents, float]"
"""Costs per element of ops, by their extents."""


class KernelBound:
    """
    Lower bounds of the seconds of a launch that computes `outs` by `group`.

    Facts that do not depend on the loops of the kernel are derived once.
    """

    def __init__(self, group: Group, outs: Values, facts: Facts):
        self.gpu, self.gpu_of_loops = facts.gpu, facts.gpu_of_loops
        self.group = without_scatters(group)
        self.outs = computed(outs)
        self.ops = [facts[op] for op in self.group]
        self.inside = union(op.bit for op in self.ops)
        """The ops, as a mask."""
        read = (each for op in self.ops for each in op.reads)
        inputs = dict.fromkeys(value for value, by in read if not by & self.inside)
        self.inputs = tuple(inputs)
        self.values = (*self.inputs, *self.outs)
        """The values that the kernel loads and stores."""
        self._facts = facts
        self._vector_ops: dict[frozenset[str], Sequence[VectorOp]] = {}
        self._seconds: dict[LoopNest, float] = {}

    @cached_property
    def grid(self) -> tuple[str, ...]:
        """The dimensions that programs split."""
        return grid_over(self.outs, {dim for op in self.ops for dim in op.reduced})

    @cached_property
    def cut(self) -> frozenset[str]:
        """
        The dimensions of loops that a mask may end early, as it compares positions.

        Only a fraction of a value or an op along them counts, see `least_fraction`.
        """
        read = (dim for op in self.ops for dim in op.positions)
        return frozenset(read).difference(self.grid)

    @cached_property
    def products(self) -> Sequence[ReadProduct]:
        """The products, also those in the steps of folds."""
        return [product for op in self.ops for product in op.products]

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """The extents of all dimensions."""
        extents = joined_extents(self.values)
        for op in self.ops:
            extents |= op.extents
        return extents

    def vector_ops(self, loops: Collection[str]) -> Sequence[VectorOp]:
        """Return the ops that vector lanes surely compute in a program with `loops`."""
        folded = self._folded.intersection(loops)
        if folded not in self._vector_ops:
            needed = slice_of(self._facts.owners(self.outs), self.ops)
            self._vector_ops[folded] = tuple(vector_ops(self.ops, needed, folded))
        return self._vector_ops[folded]

    @cached_property
    def _folded(self) -> frozenset[str]:
        """The dimensions of folds that begin with constants."""
        return frozenset(step.starts for op in self.ops for step in op.steps)

    @cached_property
    def reduced(self) -> int:
        """
        The ops that reductions depend on: they are in the loops of these, as a mask.
        """
        return slice_of(union(op.sources for op in self.ops if op.reduced), self.ops)

    def moving_seconds(self) -> float:
        """Return a lower bound that counts only the bytes of device memory."""
        waiting = self.gpu.times.load_latency * bool(self.inputs)
        moving = self.device_bytes / self.gpu.memory.hbm_bandwidth
        return (self.gpu.times.launch + max(waiting, moving)) * ROUNDED

    @cached_property
    def device_bytes(self) -> float:
        """The bytes of all values in device memory, up to the end of each sequence."""
        return sum(map(self._device_bytes, self.values))

    def _device_bytes(self, value: SSAValue) -> float:
        ended = self.cut.intersection(names_of(value))
        return bytes_of(value) * self.gpu.mean_length ** len(ended)

    def seconds(self, nest: LoopNest) -> float:
        """Return a lower bound for a loop nest, infinite if no tiles fit."""
        if (seconds := self._seconds.get(nest)) is None:
            self._seconds[nest] = seconds = _LeastWork(self, nest).seconds()
        return seconds


@dataclass(frozen=True)
class _LeastWork:
    """The least work of a kernel with some loops, for all choices of tiles."""

    kernel: KernelBound
    nest: LoopNest

    @cached_property
    def summary(self) -> KernelSummary:
        """The products of the kernel in these loops."""
        kernel = self.kernel
        return summary_of_products(
            kernel.products, kernel.extents, kernel.grid, self.nest.loops
        )

    def seconds(self) -> float:
        """Return the least seconds of a launch, infinite if no tiles fit."""
        kernel, gpu, summary = self.kernel, self.kernel.gpu, self.summary
        if not may_have_tiling(summary, gpu):
            return inf
        blocks = _columns(
            tuple((dim, tuple(block_sizes(summary, dim))) for dim in kernel.grid)
        )
        smallest = smallest_blocks(summary)
        fractions = self._padding(smallest) | {
            dim: least_fraction(kernel.group, dim, summary.nest.extents, blocks, gpu)
            for dim in kernel.cut
        }
        all_blocks = {**smallest, **blocks}
        work = self._work(all_blocks, fractions)
        device = gpu if self._depends() else kernel.gpu_of_loops
        least = inf
        for cluster in cluster_sizes(summary, gpu):
            block = block_of(summary, all_blocks, cluster)
            fits = may_fit(summary, block, work.needs.warps, gpu)
            times = self._least(self._divided(work, block, cluster), device)
            least = min(least, float(np.min(np.where(np.greater(fits, 0), times, inf))))
        return max(least * ROUNDED, kernel.moving_seconds())

    def _registers(self, blocks: Blocks, warps: Real) -> Real:
        """Return a lower bound of the bytes of registers of a thread block."""
        gpu = self.kernel.gpu
        bound = register_bound(self.summary, blocks, warps, gpu)
        threads = gpu.limits.warp_threads * warps
        return np.minimum(bound * threads * REGISTER, gpu.limits.register_bytes)

    def _divided(self, work: KernelWork, block: Blocks, cluster: int) -> KernelWork:
        """Return the least work of one thread block of a cluster."""
        if cluster == 1:
            return work
        operations, moved = work.operations, work.moved
        registers = self._registers(block, work.needs.warps)
        return replace(
            work,
            programs=work.programs * cluster,
            operations=replace(
                operations,
                tensor=operations.tensor / cluster,
                vector=operations.vector / cluster,
                looped=operations.looped / cluster,
            ),
            moved=replace(moved, l2=moved.l2 / cluster, stored=moved.stored / cluster),
            needs=replace(work.needs, registers=registers),
            together=cluster,
        )

    def _least(self, work: KernelWork, gpu: Device) -> Real:
        """
        Return the time of the full waves of a launch.

        With other tiles, the programs of the last, partial wave may be in a full one.
        """
        time = kernel_time(work, gpu)
        slots = gpu.multiprocessors * np.maximum(occupancy_of(work, gpu), 1)
        # Each wave fills its pipelines; `work` loads all else ahead.
        later_waves = wave_count(work.programs, slots) - 1
        filling = later_waves * waiting_time(work, gpu).filling
        times = {name: each.seconds for name, each in time.overlapping.items()}
        times["latency"] = times["latency"] + filling
        seconds = time.launch.seconds + longest(times.values())
        return np.where(np.greater(time.fits, 0), seconds, np.inf)

    def _padding(self, smallest: Mapping[str, int]) -> dict[str, Real]:
        """Return by which factor padding to whole blocks lengthens each dimension."""
        return {
            dim: ceil_div(extent, smallest[dim]) * smallest[dim] / extent
            for dim, extent in self.summary.nest.extents.items()
            if dim not in self.kernel.grid
        }

    def _work(self, blocks: Blocks, fractions: Mapping[str, Real]) -> KernelWork:
        """
        Return the least work of a kernel for each choice of blocks of the grid.

        `fractions` are the fractions of other dimensions that loops visit, the mean
        over all programs: the least that a multiprocessor runs if all its turns are
        full.
        """
        kernel, gpu = self.kernel, self.kernel.gpu
        programs = self.summary.programs(blocks)
        share = programs / gpu.multiprocessors
        ended = {dim: fractions[dim] * _full(share) for dim in kernel.cut}
        turns = {**fractions, **ended}
        dots, element = self._operations(blocks, turns)
        looped, later = self._additions(blocks, turns)
        if element == "f32":
            # Exact products run on vector lanes, two operations an instruction.
            dots, looped = 0.0, looped + dots / 2
        rounds, exposed = self._rounds()
        stages, warps = _LAUNCHES if kernel.products else _STAGED_LAUNCHES
        stored = _moved(kernel.outs, blocks, fractions)
        # Loops store spilled tiles, and load them again.
        spilled = _moved(tuple(self.nest.spilled), blocks, fractions)
        sizes = sum(map(bytes_of, self.nest.spilled))
        read = max(kernel.device_bytes - self._uncertain(), 0.0)
        moved = MovedBytes(
            l2=_moved(kernel.values, blocks, fractions) + 2 * spilled,
            stored=stored + spilled,
            device=read + sizes * times_spilled(sizes, programs, gpu),
            written=programs * stored + sizes,
        )
        return KernelWork(
            programs,
            Operations(dots, looped + later, looped, element=element),
            moved,
            Loops(rounds, exposed, stages=stages, loads_ahead=True),
            ProgramNeeds(warps, self._registers(blocks, warps)),
        )

    def _uncertain(self) -> float:
        """
        Return the bytes of results whose number of stores depends on tiles.

        These have short tiles of loops, or dimensions of which loops visit a fraction.
        Prices count all other traffic as loads, so that fewer loads may remain.
        """
        return sum(
            prod(map(power_of_two, extents_of(value).values())) * bits_of(value) / 8
            for value in self.kernel.outs
            if any(
                dim in self.kernel.cut
                or (dim in self.nest.loops and not is_power_of_two(extent))
                for dim, extent in extents_of(value).items()
            )
        )

    def _operations(
        self, blocks: Blocks, fractions: Mapping[str, Real]
    ) -> tuple[Real, str]:
        """
        Return the operations of products of a program, and the fastest type of them.
        """
        products, gpu = self.kernel.products, self.kernel.gpu
        types = {each.rate for each in products}
        element = max(types, key=lambda each: product_rate(each, gpu.units), default="")
        if not isfinite(product_rate(element, gpu.units)):
            return 0.0, element
        return total(
            each.operations * _fraction(each.extents, blocks, fractions)
            for each in products
        ), element

    def _additions(
        self, blocks: Blocks, fractions: Mapping[str, Real]
    ) -> tuple[Real, Real]:
        """
        Return the vector operations of a program: in loops of products, and later.

        Those that may be in such a loop count as being in it.
        """
        lanes: _Additions = defaultdict(float)
        special: _Additions = defaultdict(float)
        later: _Additions = defaultdict(float)
        for op in self.kernel.vector_ops(self.nest.loops):
            if self._is_later(op):
                later[op.extents] += op.cost
            else:
                lanes[op.extents] += op.in_loop.lanes
                special[op.extents] += op.in_loop.special
        fraction = {
            dims: _fraction(dict(dims), blocks, fractions) for dims in (*lanes, *later)
        }
        inside, beside, outside = (
            total(
                cost * prod(extent for _, extent in dims) * fraction[dims]
                for dims, cost in costs.items()
            )
            for costs in (lanes, special, later)
        )
        return larger(inside, beside), outside

    def _is_later(self, op: VectorOp) -> bool:
        """Return whether an op is certainly in no loop of products."""
        if not self.kernel.products:
            return True
        looped = not op.bit & self.kernel.inside or op.bit & self.kernel.reduced
        dims = (dim for dim, _ in op.extents)
        return not looped and set(self.nest.loops).isdisjoint(dims)

    def _depends(self) -> bool:
        """
        Return whether a loop of products certainly has vector operations, too.

        It has if a product and a vector op have the same looped dimensions, one of
        which has several iterations with blocks of any size.
        """
        kernel, loops = self.kernel, self.nest.loops
        several = {
            dim
            for dim in loops
            if self.summary.nest.extents[dim] > max(block_sizes(self.summary, dim))
        }
        if not several:
            return False
        of_products = {
            frozenset(op.dims).intersection(loops)
            for op in kernel.ops
            if op.products and not op.has_steps
        }
        of_vectors = {
            frozenset(dim for dim, _ in op.extents).intersection(loops)
            for op in kernel.vector_ops(loops)
            if op.bit and (op.in_loop.lanes or op.in_loop.special)
        }
        return any(not dims.isdisjoint(several) for dims in of_products & of_vectors)

    def _rounds(self) -> tuple[int, int]:
        """
        Return how often a program waits for loads, and how often outside of loops of
        products.

        Values without a looped dimension are loaded before or after all loops.
        """
        kernel, loops = self.kernel, self.nest.loops
        rounds = max(map(self._waits, kernel.ops), default=0)
        outside = any(
            not names.isdisjoint(kernel.grid) and names.isdisjoint(loops)
            for names in map(set, map(names_of, kernel.inputs))
        )
        if not kernel.products:
            rounds = max(rounds + outside, int(bool(kernel.inputs)))
            return rounds, rounds
        if all(not op.contracted.isdisjoint(loops) for op in kernel.products):
            return rounds + outside, int(outside)
        return max(rounds, int(bool(kernel.inputs))), 0

    def _waits(self, op: OpFacts) -> int:
        """
        Return a lower bound of how often loops wait for the loads of an op.

        The loops over its reduced dimensions form a nest, and several loops over one
        dimension follow each other. Loops of one trip may share their waits.
        """
        trips = {dim: self._trips(dim) for dim in op.reduced if dim in self._loading}
        counts = dict(zip(self.nest.loops, self.nest.counts, strict=True))
        several = (counts[dim] for dim, n in trips.items() if n > 1)
        return max(several, default=1) * prod(trips.values()) if trips else 0

    @cached_property
    def _loading(self) -> frozenset[str]:
        """The looped dimensions of the inputs."""
        read = {dim for value in self.kernel.inputs for dim in names_of(value)}
        return frozenset(read.intersection(self.nest.loops))

    def _trips(self, dim: str) -> int:
        """Return the least iterations of a loop."""
        if dim in self.kernel.cut:
            return 1
        largest = max(block_sizes(self.summary, dim))
        return ceil_div(self.summary.nest.extents[dim], largest)


def _moved(values: Values, blocks: Blocks, fractions: Mapping[str, Real]) -> Real:
    """Return the bytes of values that one program moves."""
    return total(
        bytes_of(value) * _fraction(extents_of(value), blocks, fractions)
        for value in values
    )


def _fraction(
    extents: Mapping[str, int], blocks: Blocks, fractions: Mapping[str, Real]
) -> Real:
    """Return the fraction of a value, or of the iterations of an op, in one program."""
    return product_of(
        fractions[dim] if dim in fractions else blocks[dim] / extent
        for dim, extent in extents.items()
        if dim in blocks or dim in fractions
    )


def _full(share: Real) -> Real:
    """
    Return the fraction of its turns that a multiprocessor with `share` programs fills.

    At best, programs of different lengths fill several turns evenly, see `Trips`. A
    single turn takes as long as its longest program.
    """
    return np.where(np.greater(share, 1), share / np.ceil(share), 1.0)


def _launches(stages: Sequence[int]) -> tuple[Real, Real]:
    """Return columns of stages and warps, all combinations."""
    pairs = np.array(list(product(stages, ALL_WARPS)), float)
    return pairs[:, :1], pairs[:, 1:]


_LAUNCHES = _launches((max(STAGES), 1))
_STAGED_LAUNCHES = _launches((max(STAGES),))
"""Those of kernels without products, which always have several stages."""


@lru_cache(maxsize=256)
def _columns(sizes: tuple[tuple[str, tuple[int, ...]], ...]) -> Blocks:
    """Return all combinations of block sizes: an array for each dimension."""
    grids = np.meshgrid(*(np.array(each, float) for _, each in sizes))
    return {dim: grid.ravel() for (dim, _), grid in zip(sizes, grids, strict=True)}
