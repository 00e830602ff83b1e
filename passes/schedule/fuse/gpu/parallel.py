"""Priority fusion of one graph in several ways, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

from xdsl.ir import Operation

from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Kernel, Partition
from comet.passes.schedule.fuse.gpu.priority import first_kernels, priority_partition
from comet.passes.schedule.fuse.gpu.trial import noted
from comet.passes.search.ahead import ahead, processes

FEWEST_OPS = 16
"""With fewer ops, fusing takes less time than forking a process."""

TASKS = 8
"""The number of tasks into which the pricing of the first kernels is divided."""

Numbers: TypeAlias = list[list[int]]
"""A partition, as the numbers of its ops."""


class Way(NamedTuple):
    """A way to fuse by priority."""

    recomputed: frozenset[Operation]
    eager: bool


def partitions_by_priority(
    ops: Sequence[Operation],
    forms: Forms,
    ways: Sequence[Way],
    beside: Callable[[], None],
) -> list[Partition]:
    """
    Return a partition of `ops` by priority fusion for each way.

    With several processes, all of them first price the kernels that every way begins
    with, which are almost the same. Then there is a task for each set of recomputed
    ops, which runs all ways with that set, as these share most kernels; one more task
    calls `beside`, which prices kernels that will be needed later.
    """

    def merged(way: Way) -> Partition:
        return priority_partition(ops, forms, way.recomputed, eager=way.eager)

    if not ways or len(ops) < FEWEST_OPS or processes() == 1:
        return [merged(way) for way in ways]
    _price(first_kernels(ops), forms)
    number = {op: index for index, op in enumerate(ops)}

    def numbers(together: Sequence[Way]) -> list[Numbers]:
        return [
            [[number[op] for op in group] for group in merged(way)] for way in together
        ]

    def nothing() -> list[Numbers]:
        beside()
        return []

    alike = [tuple(each) for _, each in groupby(ways, key=lambda way: way.recomputed)]
    tasks = [*(partial(numbers, each) for each in alike), nothing]
    with ahead([partial(noted, task) for task in tasks]) as done:
        return [
            tuple(tuple(ops[number] for number in group) for group in found)
            for index in range(len(tasks))
            for found in done.result(index).learned()
        ]


def _price(kernels: Sequence[Kernel], forms: Forms) -> None:
    """Price kernels in several processes."""

    def price(some: Sequence[Kernel]) -> None:
        for kernel in some:
            forms.seconds(*kernel)

    tasks = [partial(price, kernels[first::TASKS]) for first in range(TASKS)]
    with ahead([partial(noted, task) for task in tasks]) as done:
        for index in range(TASKS):
            done.result(index).learned()
