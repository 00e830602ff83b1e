"""Launch numbers and estimates of kernels with given tiles, which are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from comet.cost.from_ir.clusters import program_blocks
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize
from comet.cost.gpu.capacity import holds, shared_need
from comet.cost.gpu.clusters import LEAST_COLUMNS, MOST_ROWS, block_of, is_divided
from comet.cost.gpu.device import Device
from comet.cost.gpu.epilogue import with_fewest_subtiles
from comet.cost.gpu.registers import LaunchNumbers, alive_bytes
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import price
from comet.cost.gpu.triton_rules import SpecializedWarps
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.arch.triton_version import CLUSTERS_SINCE, version_text
from comet.dialects.compound.dims import LAUNCH_NUMBERS, SPECIALIZE, SUBTILES
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.clusters import split_dims, unsplit
from comet.dialects.schedule.epilogue import undivided
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.tl.math import MIN_DOT_EXTENT, MOST_THREADS
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.plan_string import PlanEntry
from comet.passes.schedule.tile.gpu import described_need, set_estimate
from comet.passes.schedule.tile.gpu.space import LARGE_LAUNCHES, launches_that_fit
from comet.passes.search import cheapest


def finish_kernels(func: FuncOp, system: SystemOp, plan: Sequence[PlanEntry]) -> None:
    """
    Set the launch numbers and the estimate of every kernel.

    Tiles are not changed. Launch numbers of `plan` come first, then those of the
    kernel, then the fastest. Raises PassFailedException if a number is not legal, or if
    the tiles of a kernel do not fit.
    """
    levels, gpu = gpu_levels(system), device_of(system)
    launches = {entry.name: entry.launch for entry in plan}
    for node in grid_nodes(func):
        try:
            finish_kernel(node, levels, gpu, launches.get(node.node_name or "", {}))
        except VerifyException as error:
            raise OpError(node, f"tile: @{node.node_name}: {error}") from error


def finish_kernel(
    node: SpatialOp, levels: GpuLevels, gpu: Device, fixed: Mapping[str, int]
) -> None:
    """
    Set the launch numbers and the estimate of one kernel; `fixed` numbers are kept.

    Raises VerifyException if a number is not legal, PassFailedException if the tiles do
    not fit.
    """
    _TiledKernel(node, levels, gpu).finish(fixed)


@dataclass(frozen=True)
class _TiledKernel:
    """A kernel with tiles, whose launch numbers are to be set."""

    node: SpatialOp
    levels: GpuLevels
    gpu: Device

    @cached_property
    def summary(self) -> KernelSummary:
        """The summary of the kernel, for any tiles."""
        return summarize(self.node, self.levels, self.gpu)

    @cached_property
    def blocks(self) -> Mapping[str, int]:
        """The block sizes of a program, of its thread blocks together."""
        return program_blocks(self.node)

    def finish(self, fixed: Mapping[str, int]) -> None:
        """Set the launch numbers and the estimate; `fixed` numbers are kept."""
        node, gpu = self.node, self.gpu
        self._check_products()
        launch = self._launch(self._kept(fixed))
        self._check_cluster(launch.cluster)
        blocks = block_of(self.summary, self.blocks, launch.cluster)
        node.launch = self._with_subtiles(launch, blocks)
        numbers = launch_numbers(node.launch)
        self._check_threads(launch.warps)
        self._check_capacity(blocks, numbers)
        time = price(self.summary, blocks, numbers, gpu)
        if numbers.specialize and not np.isfinite(time.seconds):
            raise OpError(node, _not_specialized(gpu.triton.specialized))
        set_estimate(node, float(time.seconds) - gpu.times.launch)

    def _kept(self, fixed: Mapping[str, int]) -> Mapping[str, int]:
        """
        Return the launch numbers that are not chosen: `fixed`, and others of the node.

        Other warps or stages need other subtiles.
        """
        own = {} if self.node.launch is None else self.node.launch.numbers
        if any(own.get(name) != number for name, number in fixed.items()):
            own.pop(SUBTILES, None)
        return {**own, **fixed}

    def _launch(self, kept: Mapping[str, int]) -> LaunchAttr:
        """
        Return num_warps, num_stages and L2 swizzle: those `kept`, and the best others.

        If nothing fits, these are the most warps.
        """
        summary, gpu = self.summary, self.gpu
        if kept.get(SPECIALIZE) and (numbers := gpu.triton.specialized):
            group = int(summary.swizzle(self.blocks))
            own = {"warps": numbers.warps, "stages": numbers.stages, "group": group}
            kept = {**own, **kept}
        if kept.keys() >= set(LAUNCH_NUMBERS):
            return LaunchAttr(**kept)
        sizes = {dim: (size,) for dim, size in self.blocks.items()}
        priced = launches_that_fit(summary, sizes, kept, gpu)
        if priced is None:
            largest = {name: numbers[-1] for name, numbers in LARGE_LAUNCHES.items()}
            chosen = LaunchAttr(**largest, group=int(summary.swizzle(self.blocks)))
        else:
            place = f"@{self.node.node_name}"
            candidates = priced.candidates(priced.varied())
            chosen = cheapest("launch numbers", place, candidates).result.launch
        return LaunchAttr(**{**chosen.numbers, **kept})

    def _with_subtiles(self, launch: LaunchAttr, blocks: Blocks) -> LaunchAttr:
        """
        Return launch numbers with the subtiles of the epilogue, by default the fewest.

        Raises PassFailedException if subtiles cannot divide it.
        """
        node, given = self.node, launch.subtiles
        if given > 1 and (reason := undivided(node, given)):
            raise OpError(
                node, f"tile: @{node.node_name}: {reason}; leave subtiles out"
            )
        if not given:
            numbers = launch_numbers(launch)
            numbers, _ = with_fewest_subtiles(self.summary, blocks, numbers, self.gpu)
            given = int(numbers.subtiles)
        return launch.replaced(subtiles=given if given > 1 else 0)

    def _check_threads(self, warps: int) -> None:
        """Raise PassFailedException for more warps than a program may have."""
        threads = self.gpu.limits.warp_threads
        if warps * threads > MOST_THREADS:
            raise OpError(
                self.node,
                f"tile: @{self.node.node_name} has {warps} warps of {threads} threads, "
                f"and a program has at most {MOST_THREADS}; give it fewer warps",
            )

    def _check_capacity(self, blocks: Blocks, numbers: LaunchNumbers) -> None:
        """Raise PassFailedException if tiles are larger than what holds them."""
        summary, gpu = self.summary, self.gpu
        shared = shared_need(summary, blocks, numbers.stages, gpu)
        if holds(summary, blocks, shared, gpu):
            return
        registers = alive_bytes(summary, blocks, gpu.triton.stores.epilogue_subtiles)
        need = described_need(self.node, registers, shared, self.levels)
        stages = " take fewer stages," if numbers.stages > 1 else ""
        raise OpError(
            self.node,
            f"tile: {need}, more than the {gpu.limits.register_bytes} and "
            f"{gpu.limits.shared_bytes} bytes there; raise its factors,{stages} or "
            "fuse less",
        )

    def _check_cluster(self, cluster: int) -> None:
        """Raise PassFailedException if a program cannot be `cluster` thread blocks."""
        if cluster == 1:
            return
        node, summary, blocks = self.node, self.summary, self.blocks
        what = f"tile: @{node.node_name} cannot have cluster={cluster}:"
        if cluster > (most := self.gpu.limits.most_cluster_blocks):
            raise OpError(
                node,
                f"{what} a program has at most {most} thread blocks "
                f"here; clusters need Triton {version_text(CLUSTERS_SINCE)} or newer, "
                "which the option triton of attach-hardware says, and "
                "most_cluster_blocks in the hardware file",
            )
        if (reason := unsplit(node)) is not None:
            raise OpError(node, f"{what} {reason}; leave it out")
        if not is_divided(summary, block_of(summary, blocks, cluster), cluster):
            row, column = split_dims(node)
            raise OpError(
                node,
                f"{what} its tiles have {blocks[row]} of {row} and {blocks[column]} of "
                f"{column}, and Triton divides the columns of at most {MOST_ROWS} "
                f"rows, {LEAST_COLUMNS} or more for each thread block; give it fewer "
                "of them, or other factors",
            )

    def _check_products(self) -> None:
        """Raise PassFailedException if tiles make a large product no `tl.dot`."""
        blocks = self.blocks
        for dot in self.summary.products.roles:
            if dot.wastes_dot(blocks, MIN_DOT_EXTENT):
                dims = [dim for dim in sorted(dot.batch) if blocks[dim] > 1]
                sizes = " and ".join(f"{blocks[dim]} of {dim}" for dim in dims)
                extents = self.summary.nest.extents
                factors = " ".join(f"{dim}={extents[dim]}" for dim in dims)
                raise OpError(
                    self.node,
                    "tile: a tl.dot takes one element of a batch dimension and tiles "
                    f"have {sizes}, so that a product of {MIN_DOT_EXTENT} or more "
                    "rows, columns and terms would be none; give "
                    f"{factors} in the factors",
                )


def _not_specialized(numbers: SpecializedWarps | None) -> str:
    """Return why a kernel of a plan with specialize=1 cannot be launched."""
    if numbers is None:
        return (
            "tile: with specialize=1 producer warps load, and the GPU has no "
            "numbers for them; leave specialize out, or say `specialized` in its "
            "hardware file"
        )
    return (
        f"tile: with specialize=1 a kernel has {numbers.groups * numbers.rows} rows of "
        "a product in each tile, and loops without others of several iterations; "
        "change its factors, or leave specialize out"
    )
