"""
The time of collectives among GPUs, by algorithm, in the latency and bandwidth model.

A message of n bytes to one peer takes latency + n / bandwidth; each rank sends one at a
time. Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2


@dataclass(frozen=True, slots=True)
class Link:
    """What joins the GPUs."""

    latency: float
    """Seconds until a store arrives at a peer."""
    bandwidth: float
    """Bytes per second that one GPU sends."""

    def messages(self, count: int, size: float) -> float:
        """Return the seconds of `count` messages of `size` bytes, one by one."""
        return count * (self.latency + size / self.bandwidth)


def _rounds(ranks: int) -> int:
    return ceil(log2(ranks))


def _ring_all_reduce(link: Link, ranks: int, size: float) -> float:
    return link.messages(2 * (ranks - 1), size / ranks)


def _doubling_all_reduce(link: Link, ranks: int, size: float) -> float:
    return link.messages(_rounds(ranks), size)


def _tree_all_reduce(link: Link, ranks: int, size: float) -> float:
    return link.messages(2 * _rounds(ranks), size)


def _ring_all_gather(link: Link, ranks: int, size: float) -> float:
    return link.messages(ranks - 1, size / ranks)


def _doubling_all_gather(link: Link, ranks: int, size: float) -> float:
    return sum(link.messages(1, size / 2**n) for n in range(1, _rounds(ranks) + 1))


Seconds = Callable[[Link, int, float], float]
"""The seconds of a collective over so many ranks on a whole value of so many bytes."""

ALL_REDUCE: dict[str, Seconds] = {
    "ring": _ring_all_reduce,
    "recursive_doubling": _doubling_all_reduce,
    "tree": _tree_all_reduce,
}
ALL_GATHER: dict[str, Seconds] = {
    "ring": _ring_all_gather,
    "recursive_doubling": _doubling_all_gather,
}
"""Of a reduce-scatter too, which sends the same messages the other way round."""
