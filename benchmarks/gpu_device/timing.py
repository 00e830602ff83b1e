"""
Clocks, and alternatives that are timed in turns.

Whatever drifts (clocks of the GPU, heat) drifts for all alternatives of a call, as
each round does every one of them once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from comet.runtime.gpu import captured
from gpu_device.kernels import occupy

CACHE = 256 * 2**20
"""Bytes that are written to empty the L2: five times that of an H200."""

COVER = 200e-6
"""Seconds for which the GPU is busy while the CPU enqueues what is timed."""

Work = Callable[[], object]
"""Enqueues what is timed; what it returns does not matter."""

Name = TypeVar("Name")


@dataclass(frozen=True)
class Rounds:
    """How often each alternative is done."""

    warm_up: int = 5
    counted: int = 30


DRY = Rounds(0, 1)
"""Once: shows that it works."""


@dataclass(frozen=True)
class Timing:
    """The times of one alternative, in seconds."""

    median: float
    lower: float
    """The first quartile."""
    upper: float
    """The third quartile."""
    n: int
    """How many times were counted."""


class Clock(Protocol):
    """Measures on a device."""

    def seconds(self, work: Work, *, cold: bool = True) -> float:
        """Return how long the device takes for this work; `cold`: with an empty L2."""
        ...

    def captured(self, work: Work) -> Callable[[], None]:
        """Return what replays the launches of the work, which ran before."""
        ...


class GpuClock:
    """
    Events on the current stream of a GPU.

    Before the first event the GPU is kept busy for `cover` seconds, so that the CPU has
    enqueued the work when its turn comes: launches are timed as they are in a stream
    that never runs dry. With 0 the GPU is idle then, and a time contains what the CPU
    needs to launch the work.
    """

    def __init__(self, cover: float = COVER) -> None:
        self._cover = cover
        self._cache = torch.empty(CACHE, dtype=torch.uint8, device="cuda")

    def seconds(self, work: Work, *, cold: bool = True) -> float:
        """Return the time between two events around the work."""
        if cold:
            self._cache.zero_()
        if self._cover:
            occupy(self._cover)
        else:
            torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        return 1e-3 * start.elapsed_time(end)

    def captured(self, work: Work) -> Callable[[], None]:
        """Return the replay of a CUDA graph; raises `RuntimeError` of torch."""
        return captured(_without_result(work))


class WallClock:
    """The clock on the wall: shows that all steps work, and nothing else."""

    def seconds(self, work: Work, *, cold: bool = True) -> float:
        """Return the time that the work takes on the CPU, whose caches stay."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def captured(self, work: Work) -> Callable[[], None]:
        """Return what does the work again: a CPU has no graphs."""
        return _without_result(work)


def _without_result(work: Work) -> Callable[[], None]:
    def done() -> None:
        work()

    return done


def time_in_turns(
    works: Mapping[Name, Work], clock: Clock, rounds: Rounds, *, cold: bool
) -> dict[Name, Timing]:
    """
    Return the times of alternatives, by name; each round does every one once.

    `cold`: the L2 is overwritten before each measurement; else it holds what the last
    alternative left.
    """
    times: dict[Name, list[float]] = {name: [] for name in works}
    for index in range(rounds.warm_up + rounds.counted):
        for name, work in works.items():
            seconds = clock.seconds(work, cold=cold)
            if index >= rounds.warm_up:
                times[name].append(seconds)
    return {name: summary(own) for name, own in times.items()}


def summary(times: list[float]) -> Timing:
    """Return median and quartiles of at least one time, in seconds."""
    if len(times) == 1:
        return Timing(times[0], times[0], times[0], 1)
    lower, median, upper = statistics.quantiles(times, n=4, method="inclusive")
    return Timing(median, lower, upper, len(times))
