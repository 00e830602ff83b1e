"""
A lower bound of the time of a kernel, before it is built and its tiles are chosen.

It is the price of the least work, for all blocks of the dimensions that programs split.
Along the others a program loads whole values and computes whole products, with any
blocks of its loops: so few large tiles leave multiprocessors idle or fill the
registers, and many small ones load the same values again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import inf, isfinite, prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.kernel import additions_of
from comet.cost.from_ir.products import (
    operations_of,
    products_in,
    rate_of,
    summarize_products,
)
from comet.cost.gpu.capacity import may_fit
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import (
    KernelWork,
    kernel_time,
    product_rate,
    resident_programs,
    waiting_time,
    wave_count,
)
from comet.cost.gpu.registers import REGISTER, register_bound
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Real, larger, longest, total
from comet.cost.reals import product as product_of
from comet.dialects.compound import ContractOp, IndexOp
from comet.dialects.compound.dims import (
    bits_of,
    bytes_of,
    extents_of,
    iteration_dims,
    joined_extents,
    names_of,
)
from comet.dialects.schedule.attributes import power_of_two
from comet.dialects.schedule.slices import even_tile
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.analysis.reduction_loops import reduced_dims, reduction_loop_count
from comet.passes.schedule.fuse.gpu.groups import Group, Values, inputs_of
from comet.passes.schedule.fuse.gpu.least_work import (
    least_in_loop,
    least_part,
    vector_ops,
)
from comet.passes.schedule.fuse.gpu.plan import grid_dims
from comet.passes.schedule.fuse.gpu.scatters import computed, without_scatters
from comet.passes.schedule.tile.gpu.space import (
    ALL_WARPS,
    STAGES,
    block_sizes,
    may_have_tiling,
    smallest_blocks,
)


def moving_seconds(group: Group, outs: Values, gpu: Device) -> float:
    """Return a lower bound of `least_seconds`, by the bytes of device memory alone."""
    ops, made = without_scatters(group), computed(outs)
    return _Least(ops, made, (), (), gpu).moving_seconds()


def least_seconds(
    group: Group, outs: Values, loops: tuple[str, ...], gpu: Device
) -> float:
    """
    Return a lower bound of the seconds of a launch, with any tiles.

    The kernel computes `outs` by `group`, with loops over the dimensions `loops`, the
    outermost first. Infinite if no tiles fit.
    """
    ops, made = without_scatters(group), computed(outs)
    return _Least(ops, made, grid_dims(ops, made), loops, gpu).seconds()


_Additions: TypeAlias = "defaultdict[tuple[tuple[str, int], ...], float]"
"""Costs per element of ops, by their extents."""


@dataclass(frozen=True)
class _Least:
    """The least work of a kernel that stores `outs`."""

    ops: Group
    outs: Values
    grid: tuple[str, ...]
    """The dimensions that programs split."""
    loops: tuple[str, ...]
    """The dimensions that each program loops over, the outermost first."""
    gpu: Device

    @cached_property
    def cut(self) -> frozenset[str]:
        """
        The dimensions of loops that a mask may end, as it compares positions.

        What has one of them counts in part, see `least_part`.
        """
        read = (value.owner for op in self.ops for value in op.operands)
        dims = (op.dim for op in read if isinstance(op, IndexOp))
        return frozenset(dims).difference(self.grid)

    @cached_property
    def values(self) -> Values:
        """What the kernel loads and stores."""
        return (*inputs_of(self.ops), *self.outs)

    @cached_property
    def products(self) -> Sequence[ContractOp]:
        """The products, also those in the steps of folds."""
        return [each for op in self.ops for each in products_in(op)]

    def seconds(self) -> float:
        """Return the least seconds of a launch, infinite if no tiles fit."""
        summary = summarize_products(self.ops, self.grid, self.loops)
        summary = replace(
            summary,
            extents={**joined_extents(self.values), **summary.extents},
            inner_dims=frozenset(self.loops[1:]),
        )
        if not may_have_tiling(summary, self.gpu):
            return inf
        blocks = _columns(
            tuple((dim, tuple(block_sizes(summary, dim))) for dim in self.grid)
        )
        parts = self._padding(summary) | {
            dim: least_part(self.ops, dim, summary.extents, blocks, self.gpu)
            for dim in self.cut
        }
        all_blocks = {**smallest_blocks(summary), **blocks}
        work = self._work(summary, all_blocks, parts)
        fits = may_fit(summary, all_blocks, work.warps, self.gpu)
        least = float(np.min(np.where(np.greater(fits, 0), self._least(work), inf)))
        return max(least, self.moving_seconds())

    def _least(self, work: KernelWork) -> Real:
        """
        Return the time of a launch, without the program that runs after the full waves:
        in other kernels it may be in one of them.
        """
        # Loops need not wait for products that they reduce.
        gpu = replace(self.gpu, dependent=0.0)
        time = kernel_time(work, gpu)
        slots = gpu.multiprocessors * np.maximum(resident_programs(work, gpu), 1)
        # Each wave fills its pipelines; `work` loads all else ahead.
        later_waves = wave_count(work.programs, slots) - 1
        filling = later_waves * waiting_time(work, gpu).filling
        parts = {**time.parts, "latency": time.latency + filling}
        seconds = time.launch + longest(parts.values())
        return np.where(np.greater(time.fits, 0), seconds, np.inf)

    def _padding(self, summary: KernelSummary) -> dict[str, Real]:
        """Return how much longer than its extent each dimension is in blocks."""
        smallest = smallest_blocks(summary)
        return {
            dim: even_tile(extent, smallest[dim]) * smallest[dim] / extent
            for dim, extent in summary.extents.items()
            if dim not in self.grid
        }

    def _work(
        self,
        summary: KernelSummary,
        blocks: Blocks,
        parts: Mapping[str, Real],
    ) -> KernelWork:
        """
        Return the least work of a kernel for some blocks of the grid.

        `parts` are those of other dimensions that loops visit, the mean over all
        programs. In a full turn, a multiprocessor runs at least so much.
        """
        programs = summary.programs(blocks)
        share = programs / self.gpu.multiprocessors
        ended = {dim: parts[dim] * _full(share) for dim in self.cut}
        turns = {**parts, **ended}
        dots, element = self._operations(blocks, turns)
        looped, later = self._additions(blocks, turns)
        if element == "f32":
            # Exact products run on vector lanes, two operations an instruction.
            dots, looped = 0.0, looped + dots / 2
        rounds, exposed = self._rounds(summary)
        stages, warps = self._launches
        threads = self.gpu.warp_threads * warps
        registers = register_bound(summary, blocks, warps, self.gpu) * threads
        return KernelWork(
            programs=programs,
            tensor_operations=dots,
            vector_operations=looped + later,
            looped_operations=looped,
            moved_bytes=self._moved(self.values, blocks, parts),
            stored_bytes=self._moved(self.outs, blocks, parts),
            shared_reads=0.0,
            device_bytes=max(self._all_bytes - self._uncertain(), 0.0),
            rounds=rounds,
            exposed_rounds=exposed,
            pipelines=self._pipelines(summary),
            stages=stages,
            warps=warps,
            registers=np.minimum(registers * REGISTER, self.gpu.register_bytes),
            element=element,
            loads_ahead=True,
        )

    @property
    def _launches(self) -> tuple[Real, Real]:
        """The stages and warps; without products, there are always several stages."""
        stages = (max(STAGES), 1) if self.products else (max(STAGES),)
        pairs = np.array(list(product(stages, ALL_WARPS)), float)
        return pairs[:, :1], pairs[:, 1:]

    def _moved(self, values: Values, blocks: Blocks, parts: Mapping[str, Real]) -> Real:
        """Return the bytes of values that one program moves."""
        return total(
            bytes_of(value) * _part(extents_of(value), blocks, parts)
            for value in values
        )

    def moving_seconds(self) -> float:
        """Return the least seconds of a launch, by the bytes of device memory alone."""
        waiting = self.gpu.load_latency * bool(inputs_of(self.ops))
        moving = self._all_bytes / self.gpu.hbm_bandwidth
        return self.gpu.launch + max(waiting, moving)

    @property
    def _all_bytes(self) -> float:
        return sum(map(self._device_bytes, self.values))

    def _uncertain(self) -> float:
        """
        Return the most bytes of results that loops may store more or less often.

        Prices take what they do not store for loaded: more stores, fewer loads.
        """
        return sum(
            prod(map(power_of_two, extents_of(value).values())) * bits_of(value) / 8
            for value in self.outs
            if any(
                power_of_two(extent) != extent or dim in self.cut
                for dim, extent in extents_of(value).items()
                if dim in self.loops
            )
        )

    def _operations(
        self, blocks: Blocks, parts: Mapping[str, Real]
    ) -> tuple[Real, str]:
        """Return the operations of products of one program, and their fastest type."""
        types = {rate_of(each) for each in self.products}
        element = max(types, key=lambda each: product_rate(each, self.gpu), default="")
        if not isfinite(product_rate(element, self.gpu)):
            return 0.0, element
        return total(
            operations_of(each) * _part(joined_extents(each.operands), blocks, parts)
            for each in self.products
        ), element

    def _additions(
        self, blocks: Blocks, parts: Mapping[str, Real]
    ) -> tuple[Real, Real]:
        """
        Return the vector operations of one program: those that may be in loops of
        products, and the others.
        """
        lanes: _Additions = defaultdict(float)
        special: _Additions = defaultdict(float)
        later: _Additions = defaultdict(float)
        for op in vector_ops(self.ops, self.outs):
            dims = tuple(joined_extents((*op.operands, *op.results)).items())
            if self._is_later(op):
                later[dims] += additions_of(op, self.gpu)
            else:
                cost = least_in_loop(op, self.gpu)
                lanes[dims] += cost.lanes
                special[dims] += cost.special
        inside, beside, outside = (
            total(
                cost * prod(extents.values()) * _part(extents, blocks, parts)
                for extents, cost in (
                    (dict(dims), each) for dims, each in costs.items()
                )
            )
            for costs in (lanes, special, later)
        )
        return larger(inside, beside), outside

    def _is_later(self, op: Operation) -> bool:
        """Return whether an op is in no loop of products."""
        if not self.products:
            return True
        looped = op not in self._members or op in self._reduced
        return not looped and set(self.loops).isdisjoint(iteration_dims(op))

    @cached_property
    def _members(self) -> frozenset[Operation]:
        return frozenset(self.ops)

    @cached_property
    def _reduced(self) -> frozenset[Operation]:
        """The ops of which others compute reductions, which are in their loops."""
        reducing = (op for op in self.ops if reduced_dims(op))
        return defining_ops((v for op in reducing for v in op.operands), self._members)

    def _device_bytes(self, value: SSAValue) -> float:
        """Return the bytes of a value that loops read before sequences end."""
        ended = self.cut.intersection(names_of(value))
        return bytes_of(value) * self.gpu.mean_length ** len(ended)

    def _rounds(self, summary: KernelSummary) -> tuple[int, int]:
        """
        Return how often a program waits for loads, and how often outside of loops of
        products.

        What has no dimension of a loop is loaded before or after all of them.
        """
        rounds = max((self._waits(summary, op) for op in self.ops), default=0)
        outside = any(
            set(self.grid) & names and names.isdisjoint(self.loops)
            for names in map(set, map(names_of, inputs_of(self.ops)))
        )
        if not self.products:
            rounds = max(rounds + outside, int(bool(inputs_of(self.ops))))
            return rounds, rounds
        if all(not set(self.loops).isdisjoint(op.contracted) for op in self.products):
            return rounds + outside, int(outside)
        return max(rounds, int(bool(inputs_of(self.ops)))), 0

    def _waits(self, summary: KernelSummary, op: Operation) -> int:
        """
        Return how often loops wait for loads that an op needs, at least.

        The loops over the dimensions that it reduces are inside each other, and each
        follows others over the same dimension.
        """
        inside = [dim for dim in reduced_dims(op) if dim in self._loading]
        trips = prod(self._trips(summary, dim) for dim in inside)
        counts = (reduction_loop_count(self.ops, dim) for dim in inside)
        return max(counts, default=0) * trips

    @cached_property
    def _loading(self) -> frozenset[str]:
        """The dimensions of loops that load what has them."""
        read = {dim for value in inputs_of(self.ops) for dim in names_of(value)}
        return frozenset(read.intersection(self.loops))

    def _trips(self, summary: KernelSummary, dim: str) -> int:
        """Return the least iterations of a loop."""
        if dim in self.cut:
            return 1
        return even_tile(summary.extents[dim], max(block_sizes(summary, dim)))

    def _pipelines(self, summary: KernelSummary) -> int:
        """Return how often an innermost loop of several iterations starts at least."""
        return max((self._starts(summary, op) for op in self.products), default=1)

    def _starts(self, summary: KernelSummary, op: Operation) -> int:
        reduced = set(reduced_dims(op))
        inside = [dim for dim in self.loops if dim in reduced & self._loading]
        trips = [self._trips(summary, dim) for dim in inside]
        while trips and trips[-1] == 1:
            trips.pop()
        return prod(trips[:-1])


def _part(
    extents: Mapping[str, int], blocks: Blocks, parts: Mapping[str, Real]
) -> Real:
    """Return the part of a value or an op that one program has."""
    return product_of(
        parts[dim] if dim in parts else blocks[dim] / extent
        for dim, extent in extents.items()
        if dim in blocks or dim in parts
    )


def _full(share: Real) -> Real:
    """
    Return how much of the turns of a multiprocessor its `share` of programs fills.

    Programs of different lengths fill them evenly at best, see `Trips`; a single turn
    takes as long as its longest program.
    """
    return np.where(np.greater(share, 1), share / np.ceil(share), 1.0)


@lru_cache(maxsize=256)
def _columns(sizes: tuple[tuple[str, tuple[int, ...]], ...]) -> Blocks:
    """Return all combinations of block sizes: an array for each dimension."""
    grids = np.meshgrid(*(np.array(each, float) for _, each in sizes))
    return {dim: grid.ravel() for (dim, _), grid in zip(sizes, grids, strict=True)}
