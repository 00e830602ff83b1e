"""
The space of tilings of a GPU kernel: block sizes, warps and stages, priced as arrays.

Blocks are powers of two, as in Triton; a dimension has one block size in a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu.capacity import fits, may_fit
from comet.cost.gpu.clusters import block_of, cluster_sizes, is_divided
from comet.cost.gpu.device import Device
from comet.cost.gpu.epilogue import with_fewest_subtiles
from comet.cost.gpu.kernel import KernelTime, kernel_time
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.spent import Resource, largest
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.tiling import kernel_work, program_needs, rank
from comet.cost.reals import Real
from comet.cost.reals import product as product_of
from comet.dialects.compound.dims import CLUSTER, ceil_div
from comet.dialects.schedule.attributes import power_of_two
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.tl.math import MIN_DOT_EXTENT
from comet.passes.search import Candidate, Cost, Found

Sizes: TypeAlias = Mapping[str, Sequence[int]]
"""The candidates for the block size of each dimension, or for each launch number."""

STAGES = (3, 4, 2)
LAUNCHES: Sizes = {"warps": (4, 8), "stages": STAGES}
"""The candidates for launch numbers; of equally fast ones, the first is taken."""
GROUP_STAGES = (3, 2)
"""
The stages of kernels whose programs exchange: with four, the largest tiles spilled when
compiled for sm_90.
"""
LARGE_LAUNCHES: Sizes = {"warps": (16,), "stages": STAGES}
"""Tried if nothing else fits: with more warps, a thread needs fewer registers."""
ALL_WARPS = (*LAUNCHES["warps"], *LARGE_LAUNCHES["warps"])
SINGLE_STAGE: Sizes = {"warps": ALL_WARPS, "stages": (1,)}
"""
Tried if nothing else fits: loads of decoding took 505 us with one stage, 372 us with
three, on an H200 (benchmarks/figures).
"""

DOT_BLOCKS = (16, 32, 64, 128, 256)
DOT_DEPTHS = (32, 64)
"""Blocks of summed dimensions."""
LONG_DEPTH = 128
"""
A longer one, with which products of few rows wait less often for loads: in loops inside
no others, if no operand is computed, as the addresses and operands of others would take
many registers (`tests/data/deep_registers.csv`). Nor where a dimension is gathered from
shorter shards: a tile is computed once for each shard of another rank that it crosses.
"""
SHORT_DEPTHS = (16,)
"""Tried if nothing else fits: 32-byte rows are half of what memory moves at a time."""
WHOLE_DEPTH = 128
"""
The longest summed dimension that is one block, if that fits, instead of a loop inside
another loop, as over the elements of a head: the outer loop is not pipelined then.
"""
MOST_WHOLE_DEPTH = 256
"""The longest one that is compared as one block with such a loop."""
EXACT_DOT_DEPTHS = (16, 32)
"""DOT_DEPTHS for f32, whose products are unrolled: longer blocks spill registers."""
GRID_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
LOOP_BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096)


launch_of = lru_cache(maxsize=1 << 10)(LaunchAttr)
"""Returns launch numbers. Equal ones are one object, which is verified once."""


@dataclass(frozen=True)
class RowGroups:
    """How the rows of a kernel are divided among groups of programs."""

    groups: int
    """All groups run at the same time."""
    turns: int
    """The tiles of rows that a group computes, one after another."""


def row_groups(extent: int, block: int, limit: int) -> RowGroups:
    """
    Divide `extent` rows, in blocks of `block`, among at most `limit` groups.

    No block is divided among groups.
    """
    rows = ceil_div(extent, block)
    turns = ceil_div(rows, limit)
    return RowGroups(ceil_div(rows, turns), turns)


@dataclass(frozen=True)
class KernelTiling:
    """The block sizes and launch numbers of one kernel, and its estimated time."""

    blocks: Mapping[str, int]
    """The block size (elements) of each dimension, of one thread block."""
    launch: LaunchAttr
    seconds: float
    """The time of one launch, with its start."""
    divided: Mapping[Resource, float]
    """The seconds of each resource."""
    rank: float
    """The sort key of tilings, see `rank` in `cost/gpu/tiling.py`."""
    row_groups: RowGroups | None = None
    """How groups of programs divide the rows, if programs exchange."""

    @property
    def bound(self) -> Resource:
        """The resource that bounds the time."""
        return largest(self.divided)


class PricedTilings:
    """All combinations of block sizes, warps and stages, with the price of each."""

    def __init__(
        self,
        summary: KernelSummary,
        sizes: Sizes,
        gpu: Device,
        *,
        specialize: bool = False,
    ):
        rows = np.array(list(product(*sizes.values())), dtype=float)
        self._summary, self._sizes, self._gpu = summary, sizes, gpu
        self._specialize = specialize
        self._columns = dict(zip(sizes, rows.T, strict=True))
        warps, stages = self._columns["warps"], self._columns["stages"]
        self._cluster = self._columns.get(CLUSTER, np.ones(1))
        block = block_of(summary, self._columns, self._cluster)
        self._blocks = Evaluated.of(summary, block)
        numbers = LaunchNumbers(warps, stages, specialize, cluster=self._cluster)
        self._numbers, registers = with_fewest_subtiles(
            summary, self._blocks, numbers, gpu
        )
        self._needs = program_needs(
            summary, self._blocks, self._numbers, gpu, registers
        )
        legal = is_divided(summary, self._blocks, self._cluster)
        fitting = fits(summary, self._blocks, self._needs, gpu) * legal
        self._fitting = np.greater(fitting, 0)

    def any_fits(self) -> bool:
        """Return whether any tiling fits the GPU."""
        return bool(np.any(self._fitting)) and bool(np.isfinite(self._ranks).any())

    @cached_property
    def _time(self) -> KernelTime:
        """The time of all tilings, which is not computed if none fits."""
        summary, blocks, gpu = self._summary, self._blocks, self._gpu
        work = kernel_work(summary, blocks, self._numbers, gpu, self._needs)
        return kernel_time(work, gpu)

    @cached_property
    def _ranks(self) -> NDArray[np.float64]:
        """The sort key of each tiling, infinite if it does not fit."""
        programs = self._summary.programs(self._blocks) * self._cluster
        order = rank(self._time, programs, self._gpu)
        return np.where(self._fitting, order, np.inf)

    @cached_property
    def _seconds(self) -> Real:
        return self._time.seconds

    def candidates(self, names: Sequence[str]) -> Iterator[Candidate[KernelTiling]]:
        """Yield the best tiling for each value of the numbers called `names`."""
        dims = (*self._summary.nest.grid, *self._summary.nest.loops)
        seen: set[int] = set()
        for name in names:
            for number in self._sizes[name]:
                row = self._best_with(name, number)
                if row is None:
                    yield Candidate(f"{name}={number}", _refused)
                elif row not in seen:
                    seen.add(row)
                    tiling = self._tiling(row)
                    numbers = {dim: tiling.blocks[dim] for dim in dims}
                    numbers |= tiling.launch.numbers
                    label = " ".join(f"{key}={n}" for key, n in numbers.items())
                    yield Candidate(label, partial(_found, tiling))

    def best(self, count: int) -> list[KernelTiling]:
        """Return the tilings that fit with the lowest ranks, at most `count`."""
        first = np.argsort(self._ranks, kind="stable")[:count]
        fitting = first[np.isfinite(self._ranks[first])]
        return [self._tiling(int(row)) for row in fitting]

    def varied(self) -> Sequence[str]:
        """Return the names of the numbers to list: of the grid, of loops, or launch."""
        for names in (self._summary.nest.grid, self._summary.nest.loops):
            if any(len(self._sizes[name]) > 1 for name in names):
                return (*names, *self._clusters)
        return (*LAUNCHES, *self._clusters)

    @property
    def _clusters(self) -> Sequence[str]:
        """The name of the launch number of clusters, if there are several of these."""
        return [CLUSTER] if len(self._sizes.get(CLUSTER, ())) > 1 else []

    def _best_with(self, name: str, number: int) -> int | None:
        """Return the best row in which `name` is `number`, None if none fits."""
        ranks = np.where(self._columns[name] == number, self._ranks, np.inf)
        best = int(np.argmin(ranks))
        return best if np.isfinite(ranks[best]) else None

    def _tiling(self, row: int) -> KernelTiling:
        def at(values: Real) -> float:
            return float(np.broadcast_to(values, self._ranks.shape)[row])

        blocks = {name: int(column[row]) for name, column in self._columns.items()}
        warps, stages = blocks.pop("warps"), blocks.pop("stages")
        cluster = blocks.pop(CLUSTER, 1)
        for dim, size in block_of(self._summary, blocks, cluster).items():
            blocks[dim] = int(size)
        subtiles = int(at(self._numbers.subtiles))
        return KernelTiling(
            blocks,
            launch_of(
                warps,
                stages,
                int(at(self._summary.swizzle(self._blocks))),
                specialize=self._specialize,
                subtiles=subtiles if subtiles > 1 else 0,
                cluster=cluster,
            ),
            at(self._seconds),
            self._time.spent.divided(row),
            at(self._ranks),
            self._row_groups(blocks),
        )

    def _row_groups(self, blocks: Mapping[str, int]) -> RowGroups | None:
        """Return how groups divide the rows; each multiprocessor has one program."""
        summary = self._summary
        if not summary.nest.group:
            return None
        (dim,) = (dim for dim in summary.nest.grid if dim not in summary.nest.group)
        size = int(
            product_of(
                summary.trips(group_dim, blocks) for group_dim in summary.nest.group
            )
        )
        limit = self._gpu.multiprocessors // size
        return row_groups(summary.nest.extents[dim], blocks[dim], limit)


def _found(tiling: KernelTiling) -> Found[KernelTiling]:
    return Found(tiling, Cost(tiling.seconds), tiling.bound, tiling.rank)


def _refused() -> Found[KernelTiling]:
    raise PassFailedException("does not fit registers or shared memory")


def tilings_that_fit(
    summary: KernelSummary, gpu: Device, *, long: bool = True
) -> PricedTilings | None:
    """
    Return the candidate tile sizes of a kernel, None if none fits.

    Also None if with each of them a product is no dot although it is large enough for
    one, or could be padded to one. `long`: summed dimensions may have `LONG_DEPTH`.
    """
    if not may_have_tiling(summary, gpu):
        return None
    tried: list[Sizes] = []
    for depths in (None, DOT_DEPTHS, SHORT_DEPTHS):
        sizes = {
            dim: block_sizes(summary, dim, depths, long=long)
            for dim in summary.nest.extents
        }
        if sizes in tried or wasted_product(summary, sizes):
            continue
        tried.append(sizes)
        if (found := launches_that_fit(summary, sizes, {}, gpu)) is not None:
            return found
    return None


def launches_that_fit(
    summary: KernelSummary, blocks: Sizes, fixed: Mapping[str, int], gpu: Device
) -> PricedTilings | None:
    """
    Return the tilings with `blocks`, and all num_warps and num_stages.

    None if none fits. Launch numbers that are `fixed` are not varied.
    """
    for launches in (LAUNCHES, LARGE_LAUNCHES, SINGLE_STAGE):
        tried = {n: (fixed[n],) if n in fixed else s for n, s in launches.items()}
        pipelined = launches is not SINGLE_STAGE
        if summary.nest.group and pipelined and "stages" not in fixed:
            tried["stages"] = GROUP_STAGES
        sizes = (fixed[CLUSTER],) if CLUSTER in fixed else cluster_sizes(summary, gpu)
        if len(sizes) > 1 or sizes[0] > 1:
            tried[CLUSTER] = sizes
        if (found := PricedTilings(summary, {**blocks, **tried}, gpu)).any_fits():
            return found
    return None


def may_have_tiling(summary: KernelSummary, gpu: Device) -> bool:
    """
    Return False if the smallest blocks of a kernel show that it has no tiling.

    With larger blocks, no more products are dots, and no fewer registers are needed.
    `summary` may lack values of the kernel, as that of `summarize_products` does.
    """
    smallest = smallest_blocks(summary)
    if unpadded_vector(summary) or wasted_product(
        summary, {dim: (size,) for dim, size in smallest.items()}
    ):
        return False
    smallest = block_of(summary, smallest, cluster_sizes(summary, gpu)[-1])
    return any(may_fit(summary, smallest, warps, gpu) > 0 for warps in ALL_WARPS)


def wasted_product(summary: KernelSummary, sizes: Sizes) -> bool:
    """
    Return whether a product is no dot, with any sizes, although it is large enough.

    Only the smallest sizes are tested: batch dimensions, which decide, have one size.
    """
    smallest = {dim: min(blocks) for dim, blocks in sizes.items()}
    return any(
        dot.wastes_dot(smallest, MIN_DOT_EXTENT) > 0 for dot in summary.products.roles
    )


def unpadded_vector(summary: KernelSummary) -> bool:
    """
    Return whether a product of a vector cannot be padded to a dot.

    That is if the dimension of its only row or column is a batch dimension of another
    product. Without a dot its loop would wait for every load. Not for f32, which
    `pad-blocks` does not pad.
    """
    return summary.products.element != "f32" and any(
        side and side <= summary.products.batch
        for dot in summary.products.roles
        for side in (dot.rows, dot.columns)
        if all(summary.nest.extents[dim] == 1 for dim in side)
    )


def smallest_blocks(summary: KernelSummary) -> dict[str, int]:
    """Return the smallest candidate block size of each dimension."""
    return {
        dim: min(block_sizes(summary, dim, SHORT_DEPTHS))
        for dim in summary.nest.extents
    }


def block_sizes(
    summary: KernelSummary,
    dim: str,
    depths: Sequence[int] | None = None,
    *,
    long: bool = False,
) -> Sequence[int]:
    """
    Return the candidate block sizes of one dimension, smallest first.

    `depths` are those for dimensions that 16-bit contractions sum. None is
    `DOT_DEPTHS`, with `long` also `LONG_DEPTH`, or the whole extent for a loop inside
    another one, see `WHOLE_DEPTH` and `MOST_WHOLE_DEPTH`.
    """
    if dim in summary.nest.group:
        return (summary.nest.group[dim],)
    full = power_of_two(summary.nest.extents[dim])
    in_grid, in_dot = dim in summary.nest.grid, dim in summary.products.dims
    if in_dot:
        full = max(full, MIN_DOT_EXTENT)
    if not in_grid and dim not in summary.nest.loops:
        return (full,)
    if dim in summary.products.batch:
        return (1,)
    sizes = GRID_BLOCKS if in_grid else LOOP_BLOCKS
    if in_dot:
        sizes = DOT_BLOCKS
    if dim in summary.products.depths:
        sizes = _depth_sizes(summary, dim, full, depths, long=long)
    return [size for size in sizes if size <= full] or [full]


def _depth_sizes(
    summary: KernelSummary,
    dim: str,
    full: int,
    depths: Sequence[int] | None,
    *,
    long: bool,
) -> Sequence[int]:
    """Return the candidates of `block_sizes` for a dimension that contractions sum."""
    inner = dim in summary.nest.inner_dims
    if depths is None and inner and full <= WHOLE_DEPTH:
        return (full,)
    if summary.products.element == "f32":
        return EXACT_DOT_DEPTHS
    sizes = depths or DOT_DEPTHS
    if sizes is DOT_DEPTHS and inner and full <= MOST_WHOLE_DEPTH:
        sizes = (*sizes, full)
    if long and sizes is DOT_DEPTHS and may_be_long(summary, dim):
        sizes = (*sizes, LONG_DEPTH)
    return sizes


def may_be_long(summary: KernelSummary, dim: str) -> bool:
    """Return whether a summed dimension may have long blocks, see `LONG_DEPTH`."""
    computed = any(dim in dot.rows | dot.columns for dot in summary.products.roles)
    least = min((summary.nest.extents[dim], *summary.nest.shards.values()))
    return dim not in summary.nest.inner_dims and not computed and least >= LONG_DEPTH
