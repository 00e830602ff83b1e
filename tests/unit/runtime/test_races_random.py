"""The race detector against a slow one that follows every edge of a graph."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comet.runtime.memory import Access, Kind, MemoryMap, Operation, Region
from comet.runtime.races import CONFLICTS, RaceDetector, RaceError

THREADS = 3
CELLS, FLAGS = 0x1000, 0x2000
PLAIN = {
    "read": Kind.READ,
    "write": Kind.WRITE,
    "add": Kind.ATOMIC_WRITE,
    "look": Kind.ATOMIC_READ,
}

Step = tuple[int, str, int]
"""A thread, what it does, and to which cell or flag."""

steps = st.lists(
    st.tuples(
        st.integers(0, THREADS - 1),
        st.sampled_from([*PLAIN, "fence", "release", "acquire", "acquire", "barrier"]),
        st.integers(0, 1),
    ),
    max_size=40,
)


@dataclass
class Node:
    """Something that happened, and what came directly before it."""

    before: "list[Node]"
    kind: Kind | None = None
    cell: int = 0


@dataclass
class Graph:
    """What happened so far."""

    last: list[Node] = field(default_factory=lambda: [Node([]) for _ in range(THREADS)])
    fenced: list[Node] = field(
        default_factory=lambda: [Node([]) for _ in range(THREADS)]
    )
    learned: list[list[Node]] = field(
        default_factory=lambda: [[] for _ in range(THREADS)]
    )
    """What each thread may hand on although no fence came since."""
    published: list[list[Node]] = field(default_factory=lambda: [[], []])
    accesses: list[Node] = field(default_factory=list[Node])

    def step(self, thread: int, what: str, where: int) -> bool:
        """Add a step; return whether it races."""
        node = Node([self.last[thread]])
        self.last[thread] = node
        if what == "fence":
            self.fenced[thread] = node
        elif what == "release":
            self.published[where].append(
                Node([self.fenced[thread], *self.learned[thread]])
            )
        elif what == "acquire":
            node.before += self.published[where]
            self.learned[thread] += self.published[where]
        elif what == "barrier":
            node.before += self.last
            self.last = [node] * THREADS
            self.fenced = [node] * THREADS
        else:
            node.kind, node.cell = PLAIN[what], where
            return self._races(node)
        return False

    def _races(self, node: Node) -> bool:
        assert node.kind is not None
        known = ancestors(node)
        rivals = [
            old
            for old in self.accesses
            if old.cell == node.cell and old.kind in CONFLICTS[node.kind]
        ]
        self.accesses.append(node)
        return any(id(old) not in known for old in rivals)


def ancestors(node: Node) -> set[int]:
    """Return everything that came before a node."""
    found: set[int] = set()
    waiting = [node]
    while waiting:
        for old in waiting.pop().before:
            if id(old) not in found:
                found.add(id(old))
                waiting.append(old)
    return found


def first_race(schedule: list[Step]) -> int | None:
    """Return which step races first, by the graph."""
    graph = Graph()
    for number, step in enumerate(schedule):
        if graph.step(*step):
            return number
    return None


def first_reported(schedule: list[Step]) -> int | None:
    """Return which step races first, by the detector."""
    memory = MemoryMap()
    memory.add(Region(CELLS, 8, 4, 0, "cells", symmetric=True))
    memory.add(Region(FLAGS, 8, 4, 0, "flags", symmetric=True))
    detector = RaceDetector(memory)
    threads = [detector.root(rank) for rank in range(THREADS)]

    def act(
        thread: int,
        start: int,
        where: int,
        kind: Kind,
        acquire: bool = False,
        release: bool = False,
    ) -> None:
        address = np.array([start + 4 * where], dtype=np.uint64)
        access = Access(kind, address, 4, acquire, release)
        detector.access(threads[thread], access, Operation(thread, "kernel", "k.py:1"))

    for number, (thread, what, where) in enumerate(schedule):
        try:
            if what == "fence":
                detector.fence(threads[thread])
            elif what == "barrier":
                detector.barrier(threads)
            elif what == "release":
                act(thread, FLAGS, where, Kind.ATOMIC_WRITE, release=True)
            elif what == "acquire":
                act(thread, FLAGS, where, Kind.ATOMIC_READ, acquire=True)
            else:
                act(thread, CELLS, where, PLAIN[what])
        except RaceError:
            return number
    return None


@settings(max_examples=200)
@given(steps)
def test_both_find_the_same_first_race(schedule: list[Step]):
    assert first_reported(schedule) == first_race(schedule)
