"""
A lower bound of the time of a kernel, before it is built and its tiles are chosen.

It is the price of the least work, for all blocks of the dimensions that programs split.
Along the others a program loads whole values and computes whole products, in any form
of the kernel: so few large tiles leave multiprocessors idle or fill the registers, and
many small ones load the same values again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, isfinite, prod

import numpy as np
from xdsl.ir import SSAValue

from comet.cost.from_ir.kernel import additions_of
from comet.cost.from_ir.products import (
    operations_of,
    products_in,
    rate_of,
    summarize_products,
)
from comet.cost.gpu.capacity import may_fit
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import KernelTime, KernelWork, kernel_time, product_rate
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Real, longest, total
from comet.cost.reals import product as product_of
from comet.dialects.compound import ContractOp, IndexOp
from comet.dialects.compound.dims import (
    bytes_of,
    extents_of,
    joined_extents,
    names_of,
)
from comet.passes.analysis.reduction_loops import (
    reduced_dims,
    reduction_loop_count,
    result_dims_over,
)
from comet.passes.schedule.fuse.gpu.groups import Group, Values, inputs_of
from comet.passes.schedule.fuse.gpu.least_work import least_part, vector_ops
from comet.passes.schedule.fuse.gpu.plan import grid_dims
from comet.passes.schedule.fuse.gpu.scatters import computed, without_scatters
from comet.passes.schedule.tile.gpu.space import (
    ALL_WARPS,
    STAGES,
    WHOLE_DEPTH,
    block_sizes,
    may_have_tiling,
    smallest_blocks,
)


def moving_seconds(group: Group, outs: Values, gpu: Device) -> float:
    """Return a lower bound of `least_seconds`, by the bytes of device memory alone."""
    return _Least(without_scatters(group), computed(outs), (), gpu).moving_seconds()


def least_seconds(group: Group, outs: Values, gpu: Device) -> float:
    """
    Return a lower bound of the seconds of a launch, with any loops and tiles.

    The kernel computes `outs` by `group`. Infinite if no tiles fit.
    """
    ops, made = without_scatters(group), computed(outs)
    return _Least(ops, made, grid_dims(ops, made), gpu).seconds()


@dataclass(frozen=True)
class _Least:
    """The least work of a kernel that stores `outs`."""

    ops: Group
    outs: Values
    grid: tuple[str, ...]
    """The dimensions that programs split."""
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

    def seconds(self) -> float:
        """Return the least seconds of a launch, infinite if no tiles fit."""
        reduced = {dim for op in self.ops for dim in reduced_dims(op)}
        looped = tuple(filter(self._is_looped, self._summed))
        summary = summarize_products(self.ops, self.grid, looped)
        summary = replace(
            summary,
            extents={**joined_extents(self.values), **summary.extents},
            loops=tuple(reduced),
        )
        if not may_have_tiling(summary, self.gpu):
            return inf
        blocks = _columns(
            tuple((dim, tuple(block_sizes(summary, dim))) for dim in self.grid)
        )
        parts = {
            dim: least_part(self.ops, dim, summary.extents, blocks, self.gpu)
            for dim in self.cut
        }
        work = self._work(summary, blocks, looped, parts)
        # Loops need not wait for products that they reduce.
        time = kernel_time(work, replace(self.gpu, dependent=0.0))
        all_blocks = {**smallest_blocks(summary), **blocks}
        fits = _any_fits(summary, all_blocks, self.gpu)
        return float(np.min(np.where(fits, _least(time), inf)))

    @cached_property
    def _summed(self) -> Collection[str]:
        """The dimensions that products sum, except those in the step of a fold."""
        products = (op for op in self.ops if isinstance(op, ContractOp))
        return dict.fromkeys(dim for op in products for dim in op.contracted)

    def _is_looped(self, dim: str) -> bool:
        """
        Return whether a reduced dimension is a loop in any form.

        That is if one loop over it is enough, and it need not be inside other loops.
        """
        kept = result_dims_over(self.ops, dim)
        return kept.issubset(self.grid) and reduction_loop_count(self.ops, dim) == 1

    def _work(
        self,
        summary: KernelSummary,
        blocks: Blocks,
        looped: Sequence[str],
        parts: Mapping[str, Real],
    ) -> KernelWork:
        """
        Return the least work of a kernel for some blocks of the grid.

        `parts` are those of the dimensions of `cut` that loops visit, the mean over all
        programs. In a full turn, a multiprocessor runs at least so much.
        """
        programs = summary.programs(blocks)
        share = programs / self.gpu.multiprocessors
        turns = {dim: part * _full(share) for dim, part in parts.items()}
        dots, element = self._operations(blocks, turns)
        vectors = self._additions(blocks, turns)
        if element == "f32":
            # Exact products run on vector lanes, two operations an instruction.
            dots, vectors = 0.0, vectors + dots / 2
        return KernelWork(
            programs=programs,
            tensor_operations=dots,
            vector_operations=vectors,
            looped_operations=vectors,
            moved_bytes=self._moved(self.values, blocks, parts),
            stored_bytes=self._moved(self.outs, blocks, parts),
            shared_reads=0.0,
            device_bytes=self._all_bytes,
            rounds=self._rounds(summary, looped),
            stages=max(STAGES),
            warps=min(ALL_WARPS),
            element=element,
            loads_ahead=True,
        )

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

    def _operations(
        self, blocks: Blocks, parts: Mapping[str, Real]
    ) -> tuple[Real, str]:
        """Return the operations of products of one program, and their fastest type."""
        products = [each for op in self.ops for each in products_in(op)]
        types = {rate_of(each) for each in products}
        element = max(types, key=lambda each: product_rate(each, self.gpu), default="")
        if not isfinite(product_rate(element, self.gpu)):
            return 0.0, element
        return total(
            operations_of(each) * _part(joined_extents(each.operands), blocks, parts)
            for each in products
        ), element

    def _additions(self, blocks: Blocks, parts: Mapping[str, Real]) -> Real:
        """Return the vector operations of one program."""
        found: dict[tuple[tuple[str, int], ...], float] = {}
        for op in vector_ops(self.ops, self.outs):
            key = tuple(joined_extents((*op.operands, *op.results)).items())
            found[key] = found.get(key, 0.0) + additions_of(op, self.gpu)
        return total(
            cost * prod(extents.values()) * _part(extents, blocks, parts)
            for extents, cost in ((dict(key), cost) for key, cost in found.items())
        )

    def _device_bytes(self, value: SSAValue) -> float:
        """Return the bytes of a value that loops read before sequences end."""
        ended = self.cut.intersection(names_of(value))
        return bytes_of(value) * self.gpu.mean_length ** len(ended)

    def _rounds(self, summary: KernelSummary, looped: Sequence[str]) -> int:
        """Return how often a program waits for loads in the longest of some loops."""
        return max(
            (
                -(-summary.extents[dim] // max(block_sizes(summary, dim)))
                for dim in looped
                if dim not in self.cut and summary.extents[dim] > WHOLE_DEPTH
            ),
            default=int(bool(inputs_of(self.ops))),
        )


def _least(time: KernelTime) -> Real:
    """
    Return the time of a launch, without the program that runs after the full waves: in
    other kernels it may be in one of them.
    """
    seconds = time.launch + longest(time.parts.values())
    return np.where(np.greater(time.fits, 0), seconds, inf)


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


def _any_fits(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """Return whether a program may fit, with the best number of warps."""
    fits = (may_fit(summary, blocks, warps, gpu) for warps in ALL_WARPS)
    return np.greater(longest(fits), 0)


@lru_cache(maxsize=256)
def _columns(sizes: tuple[tuple[str, tuple[int, ...]], ...]) -> Blocks:
    """Return all combinations of block sizes: an array for each dimension."""
    grids = np.meshgrid(*(np.array(each, float) for _, each in sizes))
    return {dim: grid.ravel() for (dim, _), grid in zip(sizes, grids, strict=True)}
