"""
Times with a breakdown by resource.

A time is the time of one resource, a sum of times, or the longest of several times, of
which only that one counts. So every time is divided among resources, whose parts add up
to it; the largest part *bounds* the time. Times are seconds; they may be arrays, one
element per choice of block sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from comet.cost.reals import Real, Truth, longest

Resource: TypeAlias = Literal[
    "launch",
    "tensor cores",
    "vector lanes",
    "dependent instructions",
    "shared memory",
    "L2",
    "device memory",
    "load latency",
    "loop control",
    "idle multiprocessors",
    "exchange",
]
"""
What the time of a kernel is spent on, as tables print it.

`launch` starts the kernel. `dependent instructions` each wait for the one before.
`load latency` is that of loads that nothing hides. Multiprocessors are idle where there
are too few programs for all of them, as in the last wave. An `exchange` waits for
values of other programs.
"""

RESOURCES: Sequence[Resource] = get_args(Resource)

Divided: TypeAlias = "Counter[Resource]"
"""The seconds of each resource; their sum is the time."""


@dataclass(frozen=True, eq=False)
class Spent:
    """Seconds, and how they are divided among resources."""

    seconds: Real
    divided: Callable[[int], Mapping[Resource, float]]
    """The seconds of each resource, of the choice with this number."""

    @classmethod
    def on(cls, resource: Resource, seconds: Real) -> Spent:
        """Return the time of one resource."""
        return cls(seconds, lambda choice: {resource: _of(seconds, choice)})

    def __add__(self, other: Spent) -> Spent:
        """Return the time of one after the other."""

        def divided(choice: int) -> Divided:
            parts = Counter(self.divided(choice))
            parts.update(other.divided(choice))
            return parts

        return Spent(self.seconds + other.seconds, divided)

    def __float__(self) -> float:
        return float(self.seconds)

    def lasting(self, seconds: Real) -> Spent:
        """Return another time, divided in the proportions of this one."""

        def divided(choice: int) -> Mapping[Resource, float]:
            parts = self.divided(choice)
            whole = sum(parts.values())
            scale = _of(seconds, choice) / whole if whole else 0.0
            return {resource: scale * part for resource, part in parts.items()}

        return Spent(seconds, divided)

    def idling(self, fraction: Real) -> Spent:
        """
        Return the same time, for a fraction of which multiprocessors are idle.

        Those that are not share the rate of device memory, which is not idle.
        """

        def divided(choice: int) -> Divided:
            idle, found = _of(fraction, choice), Counter[Resource]()
            for resource, part in self.divided(choice).items():
                lost = 0.0 if resource == "device memory" else idle * part
                found.update({resource: part - lost, "idle multiprocessors": lost})
            return found

        return Spent(self.seconds, divided)

    @property
    def bound(self) -> Resource:
        """The resource that bounds the time, if this is the time of one choice."""
        return largest(self.divided(0))


def largest(divided: Mapping[Resource, float]) -> Resource:
    """Return the resource with the largest part of a time."""
    return max(divided, key=lambda resource: divided[resource])


def longest_of(*times: Spent) -> Spent:
    """Return the longest of some times that overlap, the first of equals."""

    def divided(choice: int) -> Mapping[Resource, float]:
        last = max(times, key=lambda time: _of(time.seconds, choice))
        return last.divided(choice)

    return Spent(longest(time.seconds for time in times), divided)


def either(condition: Truth, then: Spent, otherwise: Spent) -> Spent:
    """Return `then` where the condition holds, else `otherwise`."""

    def divided(choice: int) -> Mapping[Resource, float]:
        return (then if _of(condition, choice) else otherwise).divided(choice)

    return Spent(np.where(condition, then.seconds, otherwise.seconds), divided)


def _of(values: Real | Truth, choice: int) -> float:
    """Return the number of one choice; a single number holds for all choices."""
    numbers = np.asarray(values, dtype=float).ravel()
    return float(numbers[choice] if numbers.size > 1 else numbers[0])
