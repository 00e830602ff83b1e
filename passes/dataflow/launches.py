"""
Which kernels may share a launch, the time of a launch, and the cheapest launches.

Kernels that do not depend on each other can share one launch: its first programs run
the first kernel, the next programs the second one. All programs of a launch have the
same numbers of warps and stages, and the registers and the shared memory of the largest
kernel. `merge-launches` writes these launches; `fuse` prices kernels by the launches
that they will share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from math import inf
from typing import Generic, Protocol, TypeVar

from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.from_ir.partials import arrived_partials, partial_bytes
from comet.cost.gpu.capacity import fits
from comet.cost.gpu.device import Device
from comet.cost.gpu.epilogue import with_fewest_subtiles
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.shared_launch import (
    AloneTimes,
    merging_time,
    running_time,
    times_alone,
)
from comet.cost.gpu.spent import Divided, Resource, Spent, largest
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import (
    kernel_work,
    merging_work,
    program_needs,
    tensor_traffic,
)
from comet.cost.gpu.work import KernelWork, in_one_launch
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound.dims import joined_extents
from comet.dialects.schedule import SpatialOp
from comet.digraph import reachable, topological_order

Kernel = TypeVar("Kernel", bound=Hashable)
Other = TypeVar("Other", bound=Hashable)


@dataclass(frozen=True)
class Dependences(Generic[Kernel]):
    """The dependence graph of kernels, in order: which ones each kernel reads from."""

    kernels: tuple[Kernel, ...]
    read: Mapping[Kernel, frozenset[Kernel]]

    def mapped(self, other: Callable[[Kernel], Other]) -> Dependences[Other]:
        """Return the same graph, with each kernel replaced by what `other` returns."""
        found = {kernel: other(kernel) for kernel in self.kernels}
        return Dependences(
            tuple(found.values()),
            {
                found[kernel]: frozenset(map(found.__getitem__, read))
                for kernel, read in self.read.items()
            },
        )

    def independent(
        self,
        first: tuple[Kernel, ...],
        second: tuple[Kernel, ...],
        groups: Sequence[tuple[Kernel, ...]],
    ) -> bool:
        """Return whether neither needs the other, directly or through `groups`."""
        producers = self._producers_among(groups)
        return second not in reachable(producers(first), producers) and (
            first not in reachable(producers(second), producers)
        )

    def _producers_among(
        self, groups: Sequence[tuple[Kernel, ...]]
    ) -> Callable[[tuple[Kernel, ...]], Iterator[tuple[Kernel, ...]]]:
        """Return the function that yields those of `groups` that a group reads from."""
        group_of = {kernel: group for group in groups for kernel in group}
        return lambda group: (
            group_of[producer] for kernel in group for producer in self.read[kernel]
        )

    def stages(self) -> Iterator[Dependences[Kernel]]:
        """
        Yield the kernels in stages: each kernel needs all kernels of earlier stages.

        So kernels of two stages share no launch. In a long graph stages are short.
        """
        number = {kernel: index for index, kernel in enumerate(self.kernels)}
        needed = list[int]()  # for each kernel the set of those it needs, as bits
        for kernel in self.kernels:
            bits = 0
            for producer in map(number.__getitem__, self.read[kernel]):
                bits |= needed[producer] | 1 << producer
            needed.append(bits)
        bounds, by_all = [len(needed)], -1
        for index in reversed(range(len(needed))):
            by_all &= needed[index]
            if by_all == (1 << index) - 1:
                bounds.append(index)
        for start, end in pairwise(reversed(bounds)):
            kernels = self.kernels[start:end]
            inside = frozenset(kernels)
            yield Dependences(
                kernels, {each: self.read[each] & inside for each in kernels}
            )

    def in_order(
        self, groups: Sequence[tuple[Kernel, ...]]
    ) -> Iterator[tuple[Kernel, ...]]:
        """Return the groups in topological order: each after those that it needs."""
        return topological_order(groups, self._producers_among(groups))


class Groups(Generic[Kernel]):
    """
    A partition of the kernels of a stage, and the groups that each group needs.

    A set of kernels is a bit mask, with one bit for each kernel of the stage.
    """

    def __init__(self, stage: Dependences[Kernel]):
        self._read = stage.read
        self._bit = {kernel: 1 << place for place, kernel in enumerate(stage.kernels)}
        self._place = dict[Kernel, int]()
        self._members = list[int]()
        self._needed = list[int]()
        """All kernels of the groups that each one needs, directly or through others."""
        self.found = list[tuple[Kernel, ...]]()
        """The groups."""

    def needed_by(self, kernel: Kernel) -> int:
        """Return the kernels of the groups that a later kernel needs."""
        needed = 0
        for place in {self._place[producer] for producer in self._read[kernel]}:
            needed |= self._members[place] | self._needed[place]
        return needed

    def without(self, needed: int) -> Iterator[tuple[Kernel, ...]]:
        """Yield the groups none of whose kernels are needed."""
        for group, members in zip(self.found, self._members, strict=True):
            if not members & needed:
                yield group

    def add(self, kernel: Kernel, needed: int) -> None:
        """Add the next kernel as a group."""
        self._place[kernel] = len(self.found)
        self.found.append((kernel,))
        self._members.append(self._bit[kernel])
        self._needed.append(needed)

    def join(self, group: tuple[Kernel, ...], kernel: Kernel, needed: int) -> None:
        """Add the next kernel to a group, which it does not need."""
        place = self._place[kernel] = self._place[group[0]]
        before, bit = self._members[place], self._bit[kernel]
        for other, known in enumerate(self._needed):
            if known & before:
                self._needed[other] |= needed | bit
        self._needed[place] |= needed
        self._members[place] |= bit
        self.found[place] = (*group, kernel)


@dataclass(frozen=True, eq=False)
class TiledNode:
    """A node with tiles: what its programs do, and their launch numbers."""

    summary: KernelSummary
    blocks: Blocks
    numbers: LaunchNumbers
    """Its own warps and stages."""
    extents: Mapping[str, int]
    """The extents of the values that it loads and stores."""
    merged_bytes: float | None = None
    """
    The bytes of the partial results that the last program of another node merges; None
    for a node whose programs the launch starts.
    """

    @classmethod
    def of(cls, node: SpatialOp, levels: GpuLevels, gpu: Device) -> TiledNode | None:
        """
        Return the programs of a node, None if it may not share a launch.

        It needs tiles, all warps compute, and no program of it may wait for others,
        which need not run at the same time.
        """
        if node.launch is None or node.launch.specialize or waits(node):
            return None
        numbers = launch_numbers(node.launch)
        summary = summarize(node, levels, gpu)
        blocks, merged = tile_blocks(node), None
        if partials := arrived_partials(node):
            traffic = tensor_traffic(summary, blocks, gpu)
            merged = partial_bytes(node, partials, traffic)
        return cls(summary, blocks, numbers, extents_around(node), merged)


def waits(node: SpatialOp) -> bool:
    """Return whether programs of a node wait for others."""
    return any(isinstance(op, CollectiveOp) for op in node.walk())


def extents_around(node: SpatialOp) -> dict[str, int]:
    """Return the extents of the values that a node loads and stores."""
    return joined_extents((*node.ins, *node.outs))


IMPOSSIBLE = Spent.on("launch", inf)


MOST_TIMED = 2048
"""Launches, and nodes with other launch numbers, whose times are remembered."""


class LaunchTimes:
    """The times of launches of nodes on one GPU; each is found once."""

    def __init__(self, gpu: Device):
        self._gpu = gpu
        once = lru_cache(maxsize=MOST_TIMED)
        self.fastest = once(self._fastest)
        self._work, self._alone = once(self._work_with), once(self._times_alone)

    def _fastest(self, nodes: tuple[TiledNode, ...]) -> tuple[Spent, LaunchNumbers]:
        """
        Return the least time of one launch of all nodes, and its numbers.

        These are the numbers of one node. IMPOSSIBLE where none of them fit.
        """
        priced = {LaunchNumbers(0, 0): IMPOSSIBLE}
        for each in dict.fromkeys(_of_launch(node.numbers) for node in nodes):
            priced[each] = self._time(nodes, each)
        fastest = min(priced, key=lambda each: float(priced[each]))
        return priced[fastest], fastest

    def _time(self, nodes: Sequence[TiledNode], numbers: LaunchNumbers) -> Spent:
        works = [self._work(node, numbers) for node in nodes]
        fitting = [work for work in works if work is not None]
        if len(fitting) < len(works):
            return IMPOSSIBLE
        pairs = list(zip(nodes, in_one_launch(fitting), strict=True))
        started = [pair for pair in pairs if pair[0].merged_bytes is None]
        merging = [pair for pair in pairs if pair[0].merged_bytes is not None]
        running = self._together(running_time, started, numbers)
        running += self._together(merging_time, merging, numbers)
        return Spent.on("launch", self._gpu.times.launch) + running

    def _together(
        self,
        price: Callable[[Sequence[KernelWork], Device, Sequence[AloneTimes]], Spent],
        nodes: Sequence[tuple[TiledNode, KernelWork]],
        numbers: LaunchNumbers,
    ) -> Spent:
        """Return the time of nodes of a launch; the times of each alone are known."""
        needs = [(float(w.needs.registers), float(w.needs.shared)) for _, w in nodes]
        alone = [
            self._alone(node, numbers, *needed)
            for (node, _), needed in zip(nodes, needs, strict=True)
        ]
        return price([work for _, work in nodes], self._gpu, alone)

    def _times_alone(
        self, node: TiledNode, numbers: LaunchNumbers, registers: float, shared: float
    ) -> AloneTimes:
        """Return the times of a node alone, with the needs of a launch, in bytes."""
        work = self._work(node, numbers)
        assert work is not None
        needs = replace(work.needs, registers=registers, shared=shared)
        return times_alone(replace(work, needs=needs), self._gpu)

    def _work_with(self, node: TiledNode, numbers: LaunchNumbers) -> KernelWork | None:
        """Return the work with `numbers`, None if others than its own do not fit."""
        work = self._fitting_work(node, numbers)
        if work is None or node.merged_bytes is None:
            return work
        return merging_work(work, node.merged_bytes, self._gpu)

    def _fitting_work(
        self, node: TiledNode, numbers: LaunchNumbers
    ) -> KernelWork | None:
        """Return the work with `numbers`, as if all operands were in device memory."""
        summary, blocks, gpu = node.summary, node.blocks, self._gpu
        if numbers == _of_launch(node.numbers):
            return kernel_work(summary, blocks, node.numbers, gpu)
        numbers, registers = with_fewest_subtiles(summary, blocks, numbers, gpu)
        needs = program_needs(summary, blocks, numbers, gpu, registers)
        if not fits(summary, blocks, needs, gpu) > 0:
            return None
        return kernel_work(summary, blocks, numbers, gpu, needs)


class LaunchPrices(Generic[Kernel]):
    """
    The times of launches of kernels.

    `nodes_of` returns the nodes of a kernel, which its programs run one after the
    other; it is empty for a kernel that may not share a launch.
    """

    def __init__(
        self, times: LaunchTimes, nodes_of: Callable[[Kernel], Sequence[TiledNode]]
    ):
        self.times = times
        """The times of launches on one GPU, which others may share."""
        self._nodes_of = cache(nodes_of)
        self._best: dict[tuple[Kernel, ...], tuple[Spent, LaunchNumbers]] = {}
        self._saved: dict[tuple[tuple[Kernel, ...], ...], float] = {}
        self._launches: dict[Hashable, tuple[tuple[Kernel, ...], ...]] = {}
        """The cheapest launches of each stage that was asked for."""

    def launches(self, stage: Dependences[Kernel]) -> tuple[tuple[Kernel, ...], ...]:
        """
        Return the groups of kernels that share a launch, by a greedy search.

        Each kernel in turn joins the earlier group with which it saves most time, if
        any.
        """
        key = stage.kernels, tuple(stage.read.values())
        if key not in self._launches:
            self._launches[key] = tuple(self._joined(stage))
        return self._launches[key]

    def _joined(self, stage: Dependences[Kernel]) -> list[tuple[Kernel, ...]]:
        groups = Groups(stage)
        for kernel in stage.kernels:
            needed = groups.needed_by(kernel)
            gains = {
                group: gain
                for group in groups.without(needed)
                if (gain := self.saved(group, (kernel,))) > 0
            }
            if gains:
                groups.join(max(gains, key=gains.__getitem__), kernel, needed)
            else:
                groups.add(kernel, needed)
        return groups.found

    def can_share(self, group: Sequence[Kernel]) -> bool:
        """
        Return whether kernels may share a launch: each dimension has one extent in
        them.

        A kernel whose programs are clusters has a launch of its own.
        """
        extents: dict[str, int] = {}
        for kernel in group:
            nodes = self._nodes_of(kernel)
            if len(group) > 1 and any(node.numbers.cluster != 1 for node in nodes):
                return False
            pairs = (pair for node in nodes for pair in node.extents.items())
            if not nodes or any(extents.setdefault(dim, n) != n for dim, n in pairs):
                return False
        return True

    def best(self, group: tuple[Kernel, ...]) -> tuple[float, LaunchNumbers]:
        """
        Return the least seconds of a launch, and its warps and stages.

        These are the numbers of one kernel of the group. Infinite for kernels that
        cannot share a launch.
        """
        time, numbers = self._fastest(group)
        return float(time), numbers

    def divided(self, group: tuple[Kernel, ...]) -> Mapping[Resource, float]:
        """Return the seconds of the launch of a possible group, by resource."""
        return self._fastest(group)[0].divided(0)

    def _fastest(self, group: tuple[Kernel, ...]) -> tuple[Spent, LaunchNumbers]:
        if group not in self._best:
            nodes = (node for kernel in group for node in self._nodes_of(kernel))
            self._best[group] = (
                self.times.fastest(tuple(nodes))
                if self.can_share(group)
                else (IMPOSSIBLE, LaunchNumbers(0, 0))
            )
        return self._best[group]

    def saved(self, first: tuple[Kernel, ...], second: tuple[Kernel, ...]) -> float:
        """Return the seconds that one launch saves over two, at least 0."""
        if (saved := self._saved.get((first, second))) is None:
            both, saved = (*first, *second), 0.0
            if self.can_share(both):
                separate = self.best(first)[0] + self.best(second)[0]
                saved = max(saved, separate - self.best(both)[0])
            self._saved[first, second] = saved
        return saved


def _of_launch(numbers: LaunchNumbers) -> LaunchNumbers:
    """Return the numbers that all programs of a launch have: each its own subtiles."""
    return replace(numbers, subtiles=1)


def cheapest_launches(
    needs: Dependences[Kernel], prices: LaunchPrices[Kernel]
) -> list[tuple[Kernel, ...]]:
    """Return the groups of kernels that save most launches, see `launches`."""
    return [group for stage in needs.stages() for group in prices.launches(stage)]


class Timed(Protocol):
    """A kernel with the time of a launch of its own."""

    @property
    def seconds(self) -> float:
        """The seconds of the launch, with its start."""
        ...


class DividedTime(Timed, Protocol):
    """The same with what the time is spent on."""

    @property
    def divided(self) -> Mapping[Resource, float]:
        """The seconds of each resource."""
        ...


TimedKernel = TypeVar("TimedKernel", bound=Timed)
DividedKernel = TypeVar("DividedKernel", bound=DividedTime)


def seconds_of_launches(
    needs: Dependences[TimedKernel], prices: LaunchPrices[TimedKernel]
) -> float:
    """Return the seconds of kernels, with the cheapest launches."""
    one_each = sum(kernel.seconds for kernel in needs.kernels)
    merged = (group for group in cheapest_launches(needs, prices) if len(group) > 1)
    saved = (
        sum(prices.best((kernel,))[0] for kernel in group) - prices.best(group)[0]
        for group in merged
    )
    return one_each - sum(saved)


def bound_of_launches(
    needs: Dependences[DividedKernel], prices: LaunchPrices[DividedKernel]
) -> Resource:
    """Return the resource on which the cheapest launches spend most time."""
    whole: Divided = Counter()
    for group in cheapest_launches(needs, prices):
        first, *others = group
        whole.update(prices.divided(group) if others else first.divided)
    return largest(whole)
