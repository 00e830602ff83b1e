"""Priority fusion of one graph in several ways, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeAlias, cast

from xdsl.ir import Operation

from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Border, Kernel, Part, Partition
from comet.passes.schedule.fuse.gpu.priority import first_kernels, priority_partition
from comet.passes.schedule.fuse.gpu.trial import noted
from comet.passes.search.ahead import ahead, processes

FEWEST_OPS = 16
"""Fewer ops are fused sooner than a process is forked."""

PARTS = 8
"""The tasks in which the first kernels are priced, as some take longer."""

Numbers: TypeAlias = list[int | list[int]]
"""A partition, by the numbers of its ops: lists are kernels."""


def partitions_by_priority(
    ops: Sequence[Operation],
    forms: Forms,
    recomputed: Sequence[AbstractSet[Operation]],
    beside: Callable[[], None],
) -> Iterator[Partition]:
    """
    Yield a partition of `ops` by priority fusion for each set of recomputed ops.

    All begin with almost the same kernels: if there are several processes, these are
    priced first, by all of them. Then `beside` is called, in one of them, which prices
    kernels that will be asked for later.
    """
    if len(ops) < FEWEST_OPS or len(recomputed) < 2 or processes() == 1:
        yield from (priority_partition(ops, forms, again) for again in recomputed)
        return
    _price(first_kernels(ops), forms)
    number = {op: index for index, op in enumerate(ops)}

    def merged(again: AbstractSet[Operation]) -> Numbers:
        found = priority_partition(ops, forms, again)
        return [
            [number[op] for op in part] if isinstance(part, tuple) else number[part]
            for part in found
        ]

    tasks = [*(partial(merged, again) for again in recomputed), beside]
    with ahead([partial(noted, task) for task in tasks]) as done:
        for index in range(len(tasks)):
            if (found := done.result(index).learned()) is not None:
                yield tuple(_part(ops, part) for part in found)


def _part(ops: Sequence[Operation], numbers: int | list[int]) -> Part:
    """Return a part of a partition by the numbers of its ops."""
    if isinstance(numbers, int):
        return cast(Border, ops[numbers])
    return tuple(ops[number] for number in numbers)


def _price(kernels: Sequence[Kernel], forms: Forms) -> None:
    """Price kernels in several processes."""

    def price(part: Sequence[Kernel]) -> None:
        for kernel in part:
            forms.seconds(*kernel)

    parts = [kernels[first::PARTS] for first in range(PARTS)]
    with ahead([partial(noted, partial(price, part)) for part in parts]) as done:
        for index in range(PARTS):
            done.result(index).learned()
