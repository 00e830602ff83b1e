"""Collective algorithms: closed forms against a simulator of links."""

import heapq
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from comet.cost.collectives.algorithms import (
    TIMES,
    Fabric,
    Hierarchy,
    Topology,
    algorithms_for,
    cheapest,
    collective_time,
    switch,
)
from comet.cost.estimate import CostError
from comet.dialects.collective.base import Algorithm

Message = tuple[int, int, float]
"""Source, destination, share of the whole value."""

Rounds = list[list[Message]]


# The simulator: a message's head moves a hop at a time; a link carries one message at a
# time, in order of arrival; buffers hold what waits. Rounds are barriers.


def path(fabric: Fabric, source: int, target: int) -> list[tuple[Any, float]]:
    """The links on the way, each with its hop time."""
    if fabric.topology == "full":
        return [(("out", source), fabric.hop), (("in", target), 0.0)]
    stops = list(ring_stops(fabric, source, target))
    if fabric.topology == "mesh":
        stops = list(mesh_stops(fabric, source, target))
    return [(link, fabric.hop) for link in pairwise(stops)]


def ring_stops(fabric: Fabric, source: int, target: int) -> Iterator[int]:
    """The shorter way round."""
    n = fabric.ranks
    ahead = (target - source) % n
    way = 1 if ahead <= n - ahead else -1
    yield source
    while source != target:
        source = (source + way) % n
        yield source


def mesh_stops(fabric: Fabric, source: int, target: int) -> Iterator[int]:
    """Along the row, then along the column."""
    columns = fabric.shape[0]
    yield source
    while source % columns != target % columns:
        source += 1 if target % columns > source % columns else -1
        yield source
    while source != target:
        source += columns if target > source else -columns
        yield source


def round_time(fabric: Fabric, size: float, messages: list[Message]) -> float:
    """When the last message of a round has arrived."""
    free: dict[Any, float] = {}
    ways = [path(fabric, source, target) for source, target, _ in messages]
    heads = [(fabric.latency, number, 0) for number in range(len(messages))]
    heapq.heapify(heads)
    last = 0.0
    while heads:
        now, number, place = heapq.heappop(heads)
        link, hop = ways[number][place]
        takes = messages[number][2] * size / fabric.bandwidth
        start = max(now, free.get(link, 0.0))
        free[link] = start + takes
        if place + 1 < len(ways[number]):
            heapq.heappush(heads, (start + hop, number, place + 1))
        else:
            last = max(last, start + hop + takes)
    return last


def simulated(fabric: Fabric, size: float, rounds: Rounds) -> float:
    """The time of all rounds."""
    return sum(round_time(fabric, size, messages) for messages in rounds)


# What the algorithms send.


def ring_order(fabric: Fabric) -> list[int]:
    """Ranks in the order of the ring that is laid over the fabric."""
    columns, rows = fabric.shape
    if fabric.topology != "mesh" or min(columns, rows) == 1:
        return list(range(fabric.ranks))
    if rows % 2:
        turned = Fabric("mesh", (rows, columns), 0, 0, 1)
        return [(r % rows) * columns + r // rows for r in ring_order(turned)]
    order: list[int] = []
    for row in range(rows):
        line = [row * columns + column for column in range(1, columns)]
        order += line if row % 2 == 0 else line[::-1]
    return order + [row * columns for row in reversed(range(rows))]


def ring(fabric: Fabric) -> Rounds:
    order, n = ring_order(fabric), fabric.ranks
    step = [(order[i], order[(i + 1) % n], 1 / n) for i in range(n)]
    return [step] * (n - 1)


def doubling(fabric: Fabric) -> Rounds:
    n = fabric.ranks
    aparts = [1 << k for k in range(n.bit_length() - 1)]
    return [[(r, r ^ apart, apart / n) for r in range(n)] for apart in aparts]


def doubling_whole(fabric: Fabric) -> Rounds:
    return [[(s, t, 1.0) for s, t, _ in step] for step in doubling(fabric)]


def tree(fabric: Fabric) -> Rounds:
    return [[(s, t, 1.0) for s, t, _ in step] for step in tree_shares(fabric)]


def tree_shares(fabric: Fabric) -> Rounds:
    n = fabric.ranks
    strides = [1 << k for k in reversed(range((n - 1).bit_length()))]
    return [
        [
            (r, r + stride, min(stride, n - r - stride) / n)
            for r in range(0, n - stride, 2 * stride)
        ]
        for stride in strides
    ]


def direct_root(fabric: Fabric) -> Rounds:
    n = fabric.ranks
    return [[(0, r, 1 / n) for r in range(1, n)]]


def direct_all(fabric: Fabric) -> Rounds:
    n = fabric.ranks
    return [[(r, (r + k) % n, 1 / n) for k in range(1, n) for r in range(n)]]


def one_shot(fabric: Fabric) -> Rounds:
    return [[(s, t, 1.0) for s, t, _ in step] for step in direct_all(fabric)]


def ring_exchange(fabric: Fabric) -> Rounds:
    order, n = ring_order(fabric), fabric.ranks
    return [
        [(order[i], order[(i + 1) % n], left / n) for i in range(n)]
        for left in reversed(range(1, n))
    ]


def all_pairs(fabric: Fabric) -> Rounds:
    n = fabric.ranks
    return [[(r, (r + k) % n, 1 / n) for r in range(n)] for k in range(1, n)]


def mesh(fabric: Fabric) -> Rounds:
    columns, rows = fabric.shape
    along = [
        [
            (row * columns + a, row * columns + b, 1 / columns)
            for row in range(rows)
            for a, b in line_pairs(columns)
        ]
    ] * (columns - 1)
    across = [
        [
            (a * columns + column, b * columns + column, 1 / fabric.ranks)
            for column in range(columns)
            for a, b in line_pairs(rows)
        ]
    ] * (rows - 1)
    return along + across


def line_pairs(count: int) -> list[tuple[int, int]]:
    """Neighbours on a line, both ways."""
    return [pair for i in range(count - 1) for pair in ((i, i + 1), (i + 1, i))]


def both(rounds: Callable[[Fabric], Rounds]) -> Callable[[Fabric], Rounds]:
    """Once to combine and once to spread."""
    return lambda fabric: rounds(fabric) * 2


def tree_then_ring(fabric: Fabric) -> Rounds:
    return tree_shares(fabric) + ring(fabric)


SENDS: dict[tuple[str, str], Callable[[Fabric], Rounds]] = {
    ("all_gather", "ring"): ring,
    ("all_gather", "recursive_doubling"): doubling,
    ("all_gather", "direct"): direct_all,
    ("all_gather", "mesh2d"): mesh,
    ("reduce_scatter", "ring"): ring,
    ("reduce_scatter", "recursive_doubling"): doubling,
    ("reduce_scatter", "direct"): direct_all,
    ("reduce_scatter", "mesh2d"): mesh,
    ("all_reduce", "ring"): both(ring),
    ("all_reduce", "recursive_doubling"): doubling_whole,
    ("all_reduce", "halving_doubling"): both(doubling),
    ("all_reduce", "tree"): both(tree),
    ("all_reduce", "direct"): both(direct_all),
    ("all_reduce", "one_shot"): one_shot,
    ("all_reduce", "mesh2d"): both(mesh),
    ("broadcast", "tree"): tree,
    ("broadcast", "scatter_all_gather"): tree_then_ring,
    ("reduce", "tree"): tree,
    ("gather", "tree"): tree_shares,
    ("gather", "direct"): direct_root,
    ("scatter", "tree"): tree_shares,
    ("scatter", "direct"): direct_root,
    ("all_to_all", "pairwise"): all_pairs,
    ("all_to_all", "ring"): ring_exchange,
}

FULL = [Fabric("full", (n, 1), 3.0, 2.0, 8.0) for n in (2, 3, 4, 5, 7, 8, 16)]
RINGS = [Fabric("ring", (n, 1), 3.0, 2.0, 8.0) for n in (2, 3, 4, 8, 16)]
MESHES = [
    Fabric("mesh", shape, 3.0, 2.0, 8.0)
    for shape in ((2, 2), (4, 2), (2, 4), (4, 4), (8, 2), (8, 1), (8, 4), (3, 2))
]
SIZES = (64.0, 4096.0, 1e6)

CASES = [
    (kind, algorithm, fabric, size)
    for kind in TIMES
    for fabric in (*FULL, *RINGS, *MESHES)
    for algorithm in algorithms_for(kind, fabric)
    for size in SIZES
]


def contends(algorithm: str, fabric: Fabric) -> bool:
    """Whether messages of one step may meet on a link."""
    return "doubling" in algorithm and fabric.topology != "full"


def test_every_algorithm_is_simulated() -> None:
    assert SENDS.keys() == {(k, a) for k, times in TIMES.items() for a in times}
    assert len(CASES) >= 300


def test_the_ir_can_name_every_algorithm() -> None:
    named = {name for times in TIMES.values() for name in times}
    assert named | {"hierarchical"} == {str(member) for member in Algorithm}


@pytest.mark.parametrize("kind", TIMES)
def test_closed_forms_agree_with_the_links(kind: str) -> None:
    for case_kind, algorithm, fabric, size in CASES:
        if case_kind != kind:
            continue
        closed = float(collective_time(kind, algorithm, fabric, size))
        links = simulated(fabric, size, SENDS[kind, algorithm](fabric))
        tolerance = 0.05 if contends(algorithm, fabric) else 1e-12
        assert closed == pytest.approx(links, rel=tolerance), (algorithm, fabric, size)


INNER = switch(8, 1.0, 64.0)
OUTER = Fabric("ring", (4, 1), 5.0, 1.0, 8.0)
GROUPS = Hierarchy(INNER, OUTER)


def fastest(kind: str, fabric: Fabric, size: float) -> float:
    """The least time of any algorithm, as the links have it."""
    return min(
        simulated(fabric, size, SENDS[kind, algorithm](fabric))
        for algorithm in algorithms_for(kind, fabric)
    )


@pytest.mark.parametrize(
    ("kind", "phases"),
    [
        (
            "all_reduce",
            [
                ("reduce_scatter", INNER, 1.0),
                ("all_reduce", OUTER, 1 / 8),
                ("all_gather", INNER, 1.0),
            ],
        ),
        ("all_gather", [("all_gather", OUTER, 1 / 8), ("all_gather", INNER, 1.0)]),
        ("gather", [("gather", INNER, 1 / 4), ("gather", OUTER, 1.0)]),
        ("scatter", [("scatter", OUTER, 1.0), ("scatter", INNER, 1 / 4)]),
        ("broadcast", [("broadcast", OUTER, 1.0), ("broadcast", INNER, 1.0)]),
        ("all_to_all", [("all_to_all", INNER, 1.0), ("all_to_all", OUTER, 1.0)]),
    ],
)
@pytest.mark.parametrize("size", [64.0, 1e6])
def test_hierarchical_is_the_sum_of_its_phases(
    kind: str, phases: list[tuple[str, Fabric, float]], size: float
) -> None:
    expected = sum(
        fastest(phase, fabric, part * size) for phase, fabric, part in phases
    )
    time = collective_time(kind, "hierarchical", GROUPS, size)
    assert time == pytest.approx(expected)
    assert cheapest(kind, GROUPS, size) == ("hierarchical", time)


def test_groups_of_one_are_no_groups() -> None:
    alone = Hierarchy(switch(1, 1.0, 1.0), OUTER)
    for kind in TIMES:
        time = collective_time(kind, "hierarchical", alone, 1e6)
        assert time == pytest.approx(cheapest(kind, OUTER, 1e6)[1])


def test_small_messages_take_few_steps_large_ones_little_data() -> None:
    fabric = switch(8, 1e-6, 450e9)
    assert cheapest("all_reduce", fabric, 64)[0] == "one_shot"
    name, time = cheapest("all_reduce", fabric, 1e9)
    assert name == "direct"
    assert time >= 2 * 7 / 8 * 1e9 / 450e9
    ring = Fabric("ring", (16, 1), 1e-6, 0.0, 450e9)
    assert cheapest("all_reduce", ring, 64)[0] == "recursive_doubling"
    assert cheapest("all_reduce", ring, 1e9)[0] == "ring"


def test_one_rank_has_nothing_to_do() -> None:
    alone = switch(1, 1.0, 1.0)
    assert cheapest("all_gather", alone, 1e9) == (None, 0)
    assert collective_time("all_gather", "ring", alone, 1e9) == 0


@pytest.mark.parametrize("fabric", [FULL[2], RINGS[2], MESHES[3], GROUPS], ids=str)
def test_sizes_may_be_arrays(fabric: Fabric | Hierarchy) -> None:
    sizes = np.array([64.0, 1e6])
    for kind in TIMES:
        for algorithm in algorithms_for(kind, fabric):
            times = collective_time(kind, algorithm, fabric, sizes)
            each = [collective_time(kind, algorithm, fabric, s) for s in sizes]
            assert np.allclose(times, np.array(each))


@pytest.mark.parametrize(
    ("algorithm", "topology", "ranks", "reason"),
    [
        ("recursive_doubling", "full", 6, "a switch of 6 ranks; use ring, direct"),
        ("direct", "ring", 4, "of all_gather does not run on a ring of 4 ranks"),
        ("magic", "ring", 4, "use ring, recursive_doubling"),
    ],
)
def test_algorithms_that_do_not_suit(
    algorithm: str, topology: Topology, ranks: int, reason: str
) -> None:
    fabric = Fabric(topology, (ranks, 1), 1, 1, 1)
    with pytest.raises(CostError, match=reason):
        collective_time("all_gather", algorithm, fabric, 64)


@pytest.mark.parametrize("fabric", [*FULL, *RINGS, *MESHES, GROUPS], ids=str)
def test_every_kind_runs_everywhere(fabric: Fabric | Hierarchy) -> None:
    for kind in TIMES:
        assert math.isfinite(cheapest(kind, fabric, 64)[1])
