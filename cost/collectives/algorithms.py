"""
The time of collectives by algorithm and topology, in closed form.

A message of n bytes over d hops takes latency + d x hop + n / bandwidth. If k messages
of one step cross the same link, one follows the other, so the last takes k n /
bandwidth. So do the steps. Sources: Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH" (2005); Chan, Heimlich,
Purkayastha and van de Geijn, "Collective communication: theory, practice, and
experience" (2007). A link-level simulator in the tests agrees with every formula here.

Times are in any one unit, sizes in bytes; the size of a collective is that of the whole
value: the result of an all-gather, the operand of an all-reduce, what one rank sends in
an all-to-all. Sizes may be numpy arrays. `collective_time` prices one algorithm,
`cheapest` chooses; both serve GPUs, joined by a `switch`, and the instances of a memory
level on a mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from comet.cost.estimate import CostError
from comet.cost.reals import Real, total

Topology: TypeAlias = Literal["full", "ring", "mesh"]
"""
A switch that joins every rank with every other; a ring; a mesh without wrap-around,
with ranks in row-major order.
"""

_NAMES: Mapping[Topology, str] = {
    "full": "a switch",
    "ring": "a ring",
    "mesh": "a mesh",
}
"""The topologies in errors."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """The network between the ranks of a collective."""

    topology: Topology
    shape: tuple[int, int]
    """Columns and rows of a mesh; (ranks, 1) of a ring or a switch."""
    latency: float
    """To start a message."""
    hop: float
    """For each link on the way."""
    bandwidth: float
    """Bytes per unit of time through one link in one direction."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.shape[0] * self.shape[1]

    def step(self, size: Real, distance: int = 1, sharing: int = 1) -> Real:
        """
        Return the time of one step: messages of `size` bytes over `distance` hops.

        `sharing` messages cross each link. One that waits for a link passes hops in
        that time.
        """
        takes = size / self.bandwidth
        waits = (sharing - 1) * np.maximum(takes - self.hop, 0)
        return self.latency + distance * self.hop + takes + waits

    def exchange(self, distance: int) -> tuple[int, int]:
        """
        Return hops and messages per link of pairs of ranks at distance `distance`.

        `distance` is a power of two; pairs are aligned to it.
        """
        match self.topology:
            case "full":
                return 1, 1
            case "ring":
                return min(distance, self.ranks - distance), distance
            case "mesh":
                columns = self.shape[0]
                along = distance if distance < columns else distance // columns
                return along, along

    def line(self, position: int) -> Fabric:
        """Return one row (0) or column (1) of a mesh as a fabric."""
        return replace(self, topology="mesh", shape=(self.shape[position], 1))

    def __str__(self) -> str:
        return f"{_NAMES[self.topology]} of {self.ranks} ranks"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Groups of ranks: a fabric in each, and one among the ranks of equal position."""

    inner: Fabric
    outer: Fabric

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.inner.ranks * self.outer.ranks

    def __str__(self) -> str:
        return f"{self.outer.ranks} groups of {self.inner.ranks} ranks"


def switch(ranks: int, latency: float, bandwidth: float) -> Fabric:
    """Return the fabric of GPUs: each sends to one peer at a time, all equally fast."""
    return Fabric("full", (ranks, 1), latency, 0.0, bandwidth)


Time: TypeAlias = Callable[[Fabric, "Real"], "Real"]
"""The time of a collective, by fabric and size in bytes."""


def _doublings(ranks: int) -> list[int]:
    """1, 2, 4 ... below the number of ranks, a power of two."""
    return [1 << k for k in range(ranks.bit_length() - 1)]


def _ring_distance(fabric: Fabric) -> int:
    """Hops between neighbours of an algorithm's ring on the fabric."""
    columns, rows = fabric.shape
    if fabric.topology != "mesh" or fabric.ranks == 2:
        return 1
    if min(columns, rows) == 1:
        return fabric.ranks - 1
    return 1 if fabric.ranks % 2 == 0 else 2


def _ring_steps(fabric: Fabric, size: Real) -> Real:
    n = fabric.ranks
    return (n - 1) * fabric.step(size / n, _ring_distance(fabric))


def _doubling_steps(fabric: Fabric, size: Real) -> Real:
    """The messages double (or halve) with the distance of the partner."""
    n = fabric.ranks
    return total(
        fabric.step(distance * size / n, *fabric.exchange(distance))
        for distance in _doublings(n)
    )


def _doubling_all_reduce(fabric: Fabric, size: Real) -> Real:
    steps = _doublings(fabric.ranks)
    return total(fabric.step(size, *fabric.exchange(distance)) for distance in steps)


def tree_hops(fabric: Fabric) -> list[int]:
    """
    Return the hops of the longest message in each round of a binomial tree.

    The root sends in the first round. In each round, every rank that has the value
    sends it half as far as in the round before.
    """
    n = fabric.ranks
    strides = [1 << k for k in reversed(range((n - 1).bit_length()))]
    if fabric.topology == "full":
        return [1] * len(strides)
    if fabric.topology == "ring":
        return [min(s, n - s) for s in strides]
    columns = fabric.shape[0]
    return [_mesh_hops(s, columns, n) for s in strides]


def _mesh_hops(stride: int, columns: int, ranks: int) -> int:
    """Return the most hops between a sender and the rank `stride` after it."""
    starts = range(0, ranks - stride, 2 * stride)
    return max(
        abs((r + stride) % columns - r % columns)
        + ((r + stride) // columns - r // columns)
        for r in starts
    )


def _tree(fabric: Fabric, size: Real) -> Real:
    return total(fabric.step(size, hops) for hops in tree_hops(fabric))


def _tree_scatter(fabric: Fabric, size: Real) -> Real:
    """A tree that scatters (or gathers): each round sends half of what remains."""
    n, result = fabric.ranks, 0.0
    for position, hops in enumerate(reversed(tree_hops(fabric))):
        part = min(1 << position, n - (1 << position))
        result = result + fabric.step(part * size / n, hops)
    return result


def _scatter_all_gather(fabric: Fabric, size: Real) -> Real:
    """Van de Geijn's broadcast for long messages."""
    return _tree_scatter(fabric, size) + _ring_steps(fabric, size)


def _direct(fabric: Fabric, size: Real) -> Real:
    """The port of the root, or of every rank, takes the messages of all others."""
    n = fabric.ranks
    return fabric.step((n - 1) * size / n)


def _one_shot(fabric: Fabric, size: Real) -> Real:
    """Every rank sends all its data to every other, and reduces what it receives."""
    return fabric.step((fabric.ranks - 1) * size)


def _mesh_phases(fabric: Fabric, size: Real) -> Real:
    """The whole value along rows, then the part of one row along columns."""
    columns = fabric.shape[0]
    rows = _line_steps(fabric.line(0), size)
    return rows + _line_steps(fabric.line(1), size / columns)


def _line_steps(line: Fabric, size: Real) -> Real:
    """All-gather (or reduce-scatter) along a line: messages move both ways at once."""
    n = line.ranks
    return (n - 1) * line.step(size / n)


def _ring_exchange(fabric: Fabric, size: Real) -> Real:
    """All-to-all: each step sends the neighbour what has not yet reached its rank."""
    n, distance = fabric.ranks, _ring_distance(fabric)
    return total(fabric.step(left * size / n, distance) for left in range(1, n))


def _twice(half: Time) -> Time:
    """A reduce-scatter and an all-gather, or the same to a root and back."""
    return lambda fabric, size: 2 * half(fabric, size)


GATHERING: Mapping[str, Time] = {
    "ring": _ring_steps,
    "recursive_doubling": _doubling_steps,
    "direct": _direct,
    "mesh2d": _mesh_phases,
}
"""The time of all-gathers, and of reduce-scatters, which are their reverse."""

TIMES: Mapping[str, Mapping[str, Time]] = {
    "all_gather": GATHERING,
    "reduce_scatter": GATHERING,
    "all_reduce": {
        "ring": _twice(_ring_steps),
        "recursive_doubling": _doubling_all_reduce,
        "halving_doubling": _twice(_doubling_steps),
        "tree": _twice(_tree),
        "direct": _twice(_direct),
        "one_shot": _one_shot,
        "mesh2d": _twice(_mesh_phases),
    },
    "broadcast": {"tree": _tree, "scatter_all_gather": _scatter_all_gather},
    "reduce": {"tree": _tree},
    "gather": {"tree": _tree_scatter, "direct": _direct},
    "scatter": {"tree": _tree_scatter, "direct": _direct},
    "all_to_all": {"pairwise": _ring_steps, "ring": _ring_exchange},
}
"""The time of each kind of collective by algorithm, on one fabric."""

HIERARCHICAL = "hierarchical"
"""The algorithm of every kind on a hierarchy."""


def _hierarchical(kind: str, groups: Hierarchy, size: Real) -> Real:
    """Phases inside the groups and among them, each by its fastest algorithm."""
    inner, outer = groups.inner, groups.outer
    match kind:
        case "all_reduce":
            outside = _best(kind, outer, size / inner.ranks)
            inside = _best("reduce_scatter", inner, size)
            return inside + outside + _best("all_gather", inner, size)
        case "all_gather" | "reduce_scatter":
            return _best(kind, inner, size) + _best(kind, outer, size / inner.ranks)
        case "gather" | "scatter":
            return _best(kind, inner, size / outer.ranks) + _best(kind, outer, size)
        case _:
            return _best(kind, inner, size) + _best(kind, outer, size)


def _best(kind: str, fabric: Fabric, size: Real) -> Real:
    """The least time of any algorithm, element by element."""
    if fabric.ranks == 1:
        return 0 * size
    times = [TIMES[kind][name](fabric, size) for name in algorithms_for(kind, fabric)]
    best = times[0]
    for time in times[1:]:
        best = np.minimum(best, time)
    return best


def algorithms_for(kind: str, fabric: Fabric | Hierarchy) -> tuple[str, ...]:
    """Return the algorithms of a kind of collective that run on the fabric."""
    if isinstance(fabric, Hierarchy):
        return (HIERARCHICAL,)
    return tuple(name for name in TIMES[kind] if _suits(name, fabric))


def _suits(algorithm: str, fabric: Fabric) -> bool:
    match algorithm:
        case "direct" | "one_shot" | "pairwise":
            return fabric.topology == "full"
        case "mesh2d":
            return fabric.topology == "mesh"
        case "recursive_doubling" | "halving_doubling":
            return fabric.ranks & (fabric.ranks - 1) == 0
        case _:
            return True


def collective_time(
    kind: str, algorithm: str, fabric: Fabric | Hierarchy, size: Real
) -> Real:
    """
    Return the time of a collective of `size` bytes over all ranks of `fabric`.

    `kind` is a key of `TIMES`, the name of the `collective` op; `algorithm` a key of
    its entry, or `hierarchical`, which is the only one on a `Hierarchy`. It is 0 for
    one rank. Raises `CostError` for an algorithm that the kind does not have or that
    does not run on the fabric.
    """
    if fabric.ranks == 1:
        return 0 * size
    names = algorithms_for(kind, fabric)
    if algorithm not in names:
        raise CostError(
            f"the algorithm {algorithm} of {kind} does not run on {fabric}; "
            f"{'use ' + ', '.join(names) if names else 'no other does'}"
        )
    if isinstance(fabric, Hierarchy):
        return _hierarchical(kind, fabric, size)
    return TIMES[kind][algorithm](fabric, size)


def cheapest(
    kind: str, fabric: Fabric | Hierarchy, size: float
) -> tuple[str | None, float]:
    """
    Return the fastest algorithm for a collective of `size` bytes, and its time.

    There is no algorithm for one rank, which sends nothing.
    """
    if fabric.ranks == 1:
        return None, 0.0
    times = {
        name: float(collective_time(kind, name, fabric, size))
        for name in algorithms_for(kind, fabric)
    }
    best = min(times, key=times.__getitem__)
    return best, times[best]
