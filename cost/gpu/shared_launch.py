"""
The time of a launch with the programs of several nodes, none of which waits for others.

The last programs of some nodes to arrive may merge partial results: other nodes.

The programs of all nodes are one grid: where some end, others start, of whichever node
(CUDA C++ Programming Guide, "Hardware Implementation": blocks go to multiprocessors
with room as others terminate). So nodes with few programs run side by side, and only
what they all need of one resource adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import compute_time, kernel_time, resident_programs
from comet.cost.gpu.spent import Spent, longest_of
from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real


class AloneTimes(NamedTuple):
    """The times of a node that has the GPU for itself, without the launch."""

    whole: Spent
    """From its start to its end."""
    computing: Spent
    """What all its programs need of the busiest units."""


def running_time(
    works: Sequence[KernelWork],
    device: Device,
    alone: Sequence[AloneTimes] | None = None,
) -> Spent:
    """
    Return the time of the programs of all nodes of a launch: the longest of

    * the time of the slowest node alone;
    * the mean time of a wave, for each wave of the whole grid; at most the time of all
      nodes one after another;
    * the time that all nodes together need of the busiest resource.

    Infinite if a program does not fit. `works` have the registers and the shared memory
    of the launch; `alone` is `times_alone` of each, if that is known.
    """
    alone = alone or [times_alone(work, device) for work in works]
    waves = [_waves(work, device) for work in works]
    of_all = sum(waves)
    running = sum(
        time.whole.seconds * count / np.ceil(count)
        for time, count in zip(alone, waves, strict=True)
    )
    in_waves = running * np.ceil(of_all) / of_all
    whole = [time.whole for time in alone]
    one_by_one = reduce(add, whole)
    in_turn = one_by_one.lasting(np.minimum(in_waves, one_by_one.seconds))
    computing = reduce(add, [time.computing for time in alone])
    return longest_of(*whole, in_turn, computing, *_moving(works, device))


def merging_time(
    works: Sequence[KernelWork],
    device: Device,
    alone: Sequence[AloneTimes] | None = None,
) -> Spent:
    """
    Return the time that merging by the last programs adds to a launch; 0 for no
    `works`.

    The last program sees the stores of the others after an exchange. The merging nodes
    run as a grid of their own: merging may only begin when all programs of a node have
    begun. `works` and `alone` are as for `running_time`.
    """
    if not works:
        return Spent.on("exchange", 0.0)
    exchange = Spent.on("exchange", device.times.exchange)
    return exchange + running_time(works, device, alone)


def times_alone(work: KernelWork, device: Device) -> AloneTimes:
    """Return the times of a node that has the GPU for itself, without the launch."""
    time, computing = kernel_time(work, device), compute_time(work, device.units)
    running = time.body + time.exchange
    return AloneTimes(
        running.lasting(time.seconds - device.times.launch),
        computing.lasting(work.programs * computing.seconds),
    )


def _waves(work: KernelWork, device: Device) -> Real:
    """Return the number of waves of a node, which may be less than 1."""
    return work.programs / resident_programs(work, device)


def _moving(works: Sequence[KernelWork], device: Device) -> tuple[Spent, ...]:
    """Return the times that all nodes together need of each memory."""
    shared = sum(work.programs * work.moved.shared for work in works)
    l2 = sum(work.programs * work.moved.l2 for work in works)
    memory = sum(work.moved.device for work in works)
    return (
        Spent.on("shared memory", shared / device.shared_bandwidth),
        Spent.on("L2", l2 / device.memory.l2_bandwidth),
        Spent.on("device memory", memory / device.memory.hbm_bandwidth),
    )
