"""
Finds memory accesses that no synchronization orders.

Every program has a vector clock. A release of a flag passes the clock to whoever
acquires the flag; launches, their ends and barriers of ranks pass it, too. Two accesses
to an element race if one writes, not both are atomic, and by these clocks neither
happens before the other: another interleaving could swap them, even if this one did
not. Follows Flanagan and Freund, "FastTrack: efficient and precise dynamic race
detection", PLDI 2009, with blocks of elements in place of single variables.

A wait for a value of a flag that only grows acquires what was published when the flag
first reached that value, even if the wait sees a later value: it might have seen that.

A release publishes what its program did before its last barrier: without a barrier,
stores of other threads of the block may come after the release.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from comet.runtime.memory import Access, Kind, MemoryMap, Operation, Region, SyncScope

if TYPE_CHECKING:
    Cells = np.ndarray[tuple[int], np.dtype[np.int64]]
    Frontiers = np.ndarray[tuple[int], np.dtype[np.int32]]

    Clock = np.ndarray[tuple[int], np.dtype[np.int32]]
    """
    For each thread, how much of it is known: its actions at 2 * thread, its releases,
    which count as a thread of their own, at 2 * thread + 1.
    """

CONFLICTS: Mapping[Kind, frozenset[Kind]] = {
    Kind.READ: frozenset({Kind.WRITE, Kind.ATOMIC_WRITE}),
    Kind.WRITE: frozenset(Kind),
    Kind.ATOMIC_READ: frozenset({Kind.WRITE}),
    Kind.ATOMIC_WRITE: frozenset({Kind.READ, Kind.WRITE}),
}
"""The kinds of accesses of other threads that an access conflicts with."""

COVERS: Mapping[Kind, frozenset[Kind]] = {
    new: frozenset(old for old in Kind if CONFLICTS[old] <= CONFLICTS[new])
    for new in Kind
}
"""Earlier accesses that need no more checks: what races with them races with this."""


class RaceError(Exception):
    """Two operations access the same elements, and nothing orders them."""

    def __init__(
        self,
        region: Region,
        elements: tuple[int, int],
        first: tuple[Kind, Operation],
        second: tuple[Kind, Operation],
    ):
        start, stop = elements
        low, high = (region.start + index * region.itemsize for index in elements)
        super().__init__(
            f"race on {region.name}[{start}:{stop}] of rank {region.rank} "
            f"(addresses {low:#x} to {high:#x}):\n"
            f"  {first[0].value} by {first[1]}\n"
            f"  {second[0].value} by {second[1]}\n"
            "nothing orders the two: signal after the first and wait before the second"
        )
        self.region = region
        self.elements = elements
        self.first = first
        self.second = second


@dataclass(slots=True, eq=False)
class _Event:
    """A past access, at a time of the thread's own clock."""

    column: int
    """Its column in the clocks."""
    time: int
    kind: Kind
    operation: Operation


HISTORY = 64
"""How many releases of one flag are kept apart."""

ROOM = 1 << 12
"""How many frontiers are kept before unused ones are removed."""

Release = tuple[int | None, "Clock"]
"""The value that a release stored, and all that the flag has published by then."""


def _join(clock: Clock, other: Clock) -> None:
    """Add to a clock what another one knows; the other is not longer."""
    shared = clock[: other.size]
    np.maximum(shared, other, out=shared)


class RaceDetector:
    """Checks the accesses of numbered threads: hosts and programs."""

    def __init__(self, memory: MemoryMap):
        self._memory = memory
        self._columns = 16
        """The length of all clocks."""
        self._clocks: list[Clock] = []
        self._fenced: list[int] = []
        self._ranks: list[int] = []
        self._read: list[set[tuple[int, int]]] = []
        """Single elements that a thread has read since its last tick."""
        self._idle: dict[int, list[int]] = defaultdict(list)
        self._released: dict[Region, dict[tuple[int, int | None], deque[Release]]] = {}
        self._cells: dict[Region, Frontiers] = {}
        self._frontiers: list[tuple[_Event, ...]] = [()]
        self._room = ROOM
        """How many there may be before unused ones are removed."""

    def root(self, rank: int) -> int:
        """Return a new thread that is ordered after no other: the host of a rank."""
        thread = len(self._clocks)
        if 2 * thread == self._columns:
            self._columns *= 2
            self._clocks = [np.pad(clock, (0, clock.size)) for clock in self._clocks]
        clock = np.zeros(self._columns, dtype=np.int32)
        clock[2 * thread] = 1
        self._clocks.append(clock)
        self._fenced.append(0)
        self._ranks.append(rank)
        self._read.append(set())
        return thread

    def fork(self, parent: int) -> int:
        """Return a thread that comes after all that its parent has done."""
        reusable = self._idle[parent]
        thread = reusable.pop() if reusable else self.root(self._ranks[parent])
        clock = self._clocks[thread]
        _join(clock, self._clocks[parent])
        self._tick(thread)
        self._tick(parent)
        return thread

    def join(self, parent: int, child: int) -> None:
        """End a thread: its parent comes after all that it did."""
        _join(self._clocks[parent], self._clocks[child])
        self._idle[parent].append(child)

    def barrier(self, threads: Iterable[int]) -> None:
        """Order all earlier actions of these threads before all later ones."""
        members = tuple(threads)
        joined = np.zeros(self._columns, dtype=np.int32)
        for thread in members:
            _join(joined, self._clocks[thread])
        for thread in members:
            _join(self._clocks[thread], joined)
            self._tick(thread)

    def fence(self, thread: int) -> None:
        """Record a barrier of the threads inside one program."""
        self._tick(thread)

    def access(self, thread: int, access: Access, operation: Operation) -> None:
        """
        Record an access.

        Raises `RaceError` if it races with an earlier one, and `OutOfBoundsError` if it
        is to memory of no tensor.
        """
        if self._repeated(thread, access):
            return
        for region, part in self._memory.split(access):
            if part.acquire:
                self._acquire(thread, region, part)
            self._check(thread, region, part, operation)
            if part.kind is Kind.WRITE and region in self._released:
                self._forget(region, part)
            if part.release:
                self._release(thread, region, part)
        if len(self._frontiers) > self._room:
            self._forget_frontiers()

    def _tick(self, thread: int) -> None:
        clock = self._clocks[thread]
        self._fenced[thread] = int(clock[2 * thread])
        clock[2 * thread] += 1
        self._read[thread].clear()

    def _repeated(self, thread: int, access: Access) -> bool:
        """
        Whether a thread reads an element that it has just read.

        No other thread can have acquired the first read since then, so what races with
        the second read races with the first.
        """
        if access.kind is not Kind.READ or access.addresses.size != 1:
            return False
        element = (access.low, access.width)
        repeated = element in self._read[thread]
        self._read[thread].add(element)
        return repeated

    def _acquire(self, thread: int, region: Region, access: Access) -> None:
        released = self._released.get(region, {})
        for address in access.addresses.tolist():
            for domain in self._domains(thread, access.scope):
                history = released.get((address, domain), ())
                if (published := _published(history, access.awaited)) is not None:
                    _join(self._clocks[thread], published)

    def _release(self, thread: int, region: Region, access: Access) -> None:
        clock = self._clocks[thread].copy()
        clock[2 * thread] = self._fenced[thread]
        released = self._released.setdefault(region, {})
        for address in access.addresses.tolist():
            for domain in self._domains(thread, access.scope):
                key = (address, domain)
                history = released.setdefault(key, deque(maxlen=HISTORY))
                published = clock.copy()
                if history:
                    _join(published, history[-1][1])
                if _falls(history, access.left):
                    history.clear()
                history.append((access.left, published))

    def _domains(self, thread: int, scope: SyncScope) -> tuple[int | None, ...]:
        """Return the domains that a scope synchronizes: a rank's number, None: all."""
        if scope is SyncScope.CTA:
            return ()
        rank = self._ranks[thread]
        return (rank,) if scope is SyncScope.GPU else (rank, None)

    def _forget(self, region: Region, access: Access) -> None:
        """Drop what a flag published: a plain store is not part of its history."""
        overwritten = set(access.addresses.tolist())
        released = self._released[region]
        for key in [key for key in released if key[0] in overwritten]:
            del released[key]

    def _check(
        self, thread: int, region: Region, access: Access, operation: Operation
    ) -> None:
        """Check for races, then record the access for later checks."""
        event = self._event(thread, access, operation)
        clock_of = self._clocks[thread].item
        covered, rivals = COVERS[event.kind], CONFLICTS[event.kind]
        history = self._history(region)
        for frontier, here in _by_frontier(history, _cells(region, access)):
            frontier_events: list[_Event] = []
            for old in self._frontiers[frontier]:
                if old.time > clock_of(old.column):
                    if old.kind in rivals:
                        raise _race(region, here, old, event)
                    frontier_events.append(old)
                elif old.kind not in covered:
                    frontier_events.append(old)
            history[here] = len(self._frontiers)
            self._frontiers.append((*frontier_events, event))

    def _forget_frontiers(self) -> None:
        """Keep the frontiers that some element still has, and renumber them."""
        used = np.unique(np.concatenate([[0], *self._cells.values()]))
        self._frontiers = [self._frontiers[number] for number in used]
        for cells in self._cells.values():
            cells[:] = np.searchsorted(used, cells)
        self._room = max(ROOM, 2 * len(self._frontiers))

    def _history(self, region: Region) -> Frontiers:
        if region not in self._cells:
            count = -(-region.size // region.itemsize)
            self._cells[region] = np.zeros(count, dtype=np.int32)
        return self._cells[region]

    def _event(self, thread: int, access: Access, operation: Operation) -> _Event:
        """
        Return the event of an access.

        A release publishes itself, but not the plain stores since the last barrier: so
        the releases of a thread count as a thread of their own.
        """
        clock = self._clocks[thread]
        column = 2 * thread
        if access.release:
            column += 1
            clock[column] += 1
        return _Event(column, int(clock[column]), access.kind, operation)


def _race(region: Region, cells: Cells, old: _Event, new: _Event) -> RaceError:
    elements = (int(cells.min()), int(cells.max()) + 1)
    first, second = (old.kind, old.operation), (new.kind, new.operation)
    return RaceError(region, elements, first, second)


def _published(history: Iterable[Release], awaited: int | None) -> Clock | None:
    """Return the clock that a flag had published at a value, the last one for None."""
    clock: Clock | None = None
    for left, clock in history:
        if awaited is not None and (left is None or left >= awaited):
            break
    return clock


def _falls(history: Sequence[Release], left: int | None) -> bool:
    """Whether a flag decreases, so that earlier values mean nothing now."""
    last = history[-1][0] if history else None
    return last is not None and left is not None and left < last


def _cells(region: Region, access: Access) -> Cells:
    """Return the elements of the region that are accessed."""
    if access.addresses.size == 1:
        low, high = access.low - region.start, access.end - 1 - region.start
        return np.arange(low // region.itemsize, high // region.itemsize + 1)
    offsets = access.addresses.astype(np.int64) - region.start
    first = offsets // region.itemsize
    if access.width == region.itemsize and not (offsets % region.itemsize).any():
        return first
    last = (offsets + access.width - 1) // region.itemsize
    reach = int((last - first).max(initial=0))
    ranges = [np.minimum(first + step, last) for step in range(reach + 1)]
    return np.concatenate(ranges)


def _by_frontier(history: Frontiers, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """Yield the frontiers of the elements, each with the elements that have it."""
    before = history[cells]
    first = int(before[0])
    if before.size == 1 or (before == first).all():
        yield first, cells
        return
    for number in np.unique(before):
        yield int(number), cells[before == number]
