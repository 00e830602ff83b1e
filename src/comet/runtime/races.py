"""
Finds accesses to memory that no synchronisation orders.

Every program has a vector clock. A release at a flag hands the clock on to whoever
acquires the flag; launches, their ends and barriers between ranks do too. Two accesses
to an element race when one writes, not both are atomic, and neither happens before the
other by these clocks: some other interleaving could swap them, even if this one did
not. Follows Flanagan and Freund, "FastTrack: efficient and precise dynamic race
detection", PLDI 2009, with blocks of elements in place of single variables.

A wait for a value of a flag that only grows acquires what was published when the flag
first reached the value, even where it looked later: it might have looked then.

A release publishes what came before the last barrier of its own program: without a
barrier, stores of other threads of the block may come after it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from comet.runtime.memory import Access, Kind, MemoryMap, Region, Scope

if TYPE_CHECKING:
    Cells = np.ndarray[tuple[int], np.dtype[np.int64]]
    Frontiers = np.ndarray[tuple[int], np.dtype[np.int32]]

CONFLICTS: Mapping[Kind, frozenset[Kind]] = {
    Kind.READ: frozenset({Kind.WRITE, Kind.ATOMIC_WRITE}),
    Kind.WRITE: frozenset(Kind),
    Kind.ATOMIC_READ: frozenset({Kind.WRITE}),
    Kind.ATOMIC_WRITE: frozenset({Kind.READ, Kind.WRITE}),
}
"""With what, of somebody else, an access must not be concurrent."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A memory operation, as reports name it."""

    rank: int
    program: str
    """The kernel and the index of the program in its grid, or the host."""
    place: str
    """File and line."""

    def __str__(self) -> str:
        """Return the operation in a phrase."""
        return f"rank {self.rank}, {self.program}, {self.place}"


class RaceError(Exception):
    """Two operations touch the same elements and nothing orders them."""

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


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """An access in the past, at a time of the thread's own clock."""

    thread: int
    time: int
    kind: Kind
    operation: Operation


Clock = dict[int, int]
"""For each thread, how much of its past is known."""


HISTORY = 64
"""How many releases at one flag are told apart."""

Release = tuple[int | None, Clock]
"""What a release left at its flag, and all that was published there until then."""


def _join(clock: Clock, other: Clock) -> None:
    for thread, time in other.items():
        if clock.get(thread, 0) < time:
            clock[thread] = time


class RaceDetector:
    """Watches the accesses of threads, which are numbered: hosts, and programs."""

    def __init__(self, memory: MemoryMap):
        self._memory = memory
        self._clocks: dict[int, Clock] = {}
        self._fenced: dict[int, int] = {}
        self._ranks: dict[int, int] = {}
        self._idle: dict[int, list[int]] = defaultdict(list)
        self._released: dict[Region, dict[tuple[int, int | None], deque[Release]]] = {}
        self._cells: dict[Region, Frontiers] = {}
        self._frontiers: list[tuple[_Event, ...]] = [()]

    def root(self, rank: int) -> int:
        """Return a new thread that knows of no other: the host of a rank."""
        thread = len(self._clocks)
        self._clocks[thread] = {thread: 1}
        self._fenced[thread] = 0
        self._ranks[thread] = rank
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
        """End a thread: its parent comes after all that it has done."""
        _join(self._clocks[parent], self._clocks[child])
        self._idle[parent].append(child)

    def barrier(self, threads: Iterable[int]) -> None:
        """Order all that these threads did before all that they do from here."""
        members = tuple(threads)
        joined: Clock = {}
        for thread in members:
            _join(joined, self._clocks[thread])
        for thread in members:
            _join(self._clocks[thread], joined)
            self._tick(thread)

    def fence(self, thread: int) -> None:
        """Note a barrier of the threads inside one program."""
        self._tick(thread)

    def access(self, thread: int, access: Access, operation: Operation) -> None:
        """
        Note an access.

        Raises `RaceError` where it races with an earlier one, and `OutOfBoundsError`
        where it is to nobody's memory.
        """
        for region, part in self._memory.split(access):
            if part.acquire:
                self._acquire(thread, region, part)
            self._check(thread, region, part, operation)
            if part.kind is Kind.WRITE and region in self._released:
                self._forget(region, part)
            if part.release:
                self._release(thread, region, part)

    def _tick(self, thread: int) -> None:
        clock = self._clocks[thread]
        self._fenced[thread] = clock[thread]
        clock[thread] += 1

    def _acquire(self, thread: int, region: Region, access: Access) -> None:
        released = self._released.get(region, {})
        for address in access.addresses.tolist():
            for domain in self._domains(thread, access.scope):
                history = released.get((address, domain), ())
                _join(self._clocks[thread], _published(history, access.awaited))

    def _release(self, thread: int, region: Region, access: Access) -> None:
        own = self._clocks[thread] | {thread: self._fenced[thread]}
        released = self._released.setdefault(region, {})
        for address in access.addresses.tolist():
            for domain in self._domains(thread, access.scope):
                key = (address, domain)
                history = released.setdefault(key, deque(maxlen=HISTORY))
                published = own.copy()
                _join(published, _published(history, None))
                if _falls(history, access.left):
                    history.clear()
                history.append((access.left, published))

    def _domains(self, thread: int, scope: Scope) -> tuple[int | None, ...]:
        """Return whom a scope synchronises: a rank by number, the world as None."""
        if scope is Scope.CTA:
            return ()
        rank = self._ranks[thread]
        return (rank,) if scope is Scope.GPU else (rank, None)

    def _forget(self, region: Region, access: Access) -> None:
        """Drop what a flag published: a plain store is not part of its history."""
        overwritten = set(access.addresses.tolist())
        released = self._released[region]
        for key in [key for key in released if key[0] in overwritten]:
            del released[key]

    def _check(
        self, thread: int, region: Region, access: Access, operation: Operation
    ) -> None:
        event = self._event(thread, access, operation)
        history = self._history(region)
        cells = _cells(region, access)
        before = history[cells]
        for number in np.unique(before):
            frontier = int(number)
            here = cells[before == frontier]
            known = self._frontiers[frontier]
            for old in self._unordered(thread, known):
                if old.kind in CONFLICTS[event.kind]:
                    raise _race(region, here, old, event)
            history[here] = len(self._frontiers)
            self._frontiers.append(self._after(thread, known, event))

    def _history(self, region: Region) -> Frontiers:
        if region not in self._cells:
            count = -(-region.size // region.itemsize)
            self._cells[region] = np.zeros(count, dtype=np.int32)
        return self._cells[region]

    def _event(self, thread: int, access: Access, operation: Operation) -> _Event:
        """
        Return the event of an access.

        A release publishes itself too, though not the plain stores since the barrier:
        so the releases of a thread count as a thread of their own.
        """
        clock = self._clocks[thread]
        if access.release:
            thread = ~thread
            clock[thread] = clock.get(thread, 0) + 1
        return _Event(thread, clock[thread], access.kind, operation)

    def _unordered(self, thread: int, events: Iterable[_Event]) -> Iterator[_Event]:
        """Yield the events that the thread does not know of."""
        clock = self._clocks[thread]
        return (old for old in events if old.time > clock.get(old.thread, 0))

    def _after(
        self, thread: int, frontier: tuple[_Event, ...], event: _Event
    ) -> tuple[_Event, ...]:
        """Keep the events that something may race with and not with the new one."""
        unordered = set(self._unordered(thread, frontier))
        kept = (
            old
            for old in frontier
            if old in unordered or not CONFLICTS[old.kind] <= CONFLICTS[event.kind]
        )
        return (*kept, event)


def _race(region: Region, cells: Cells, old: _Event, new: _Event) -> RaceError:
    elements = (int(cells.min()), int(cells.max()) + 1)
    first, second = (old.kind, old.operation), (new.kind, new.operation)
    return RaceError(region, elements, first, second)


def _published(history: Iterable[Release], awaited: int | None) -> Clock:
    """Return what a flag published when it reached the value, or all that it did."""
    clock: Clock = {}
    for left, clock in history:
        if awaited is not None and (left is None or left >= awaited):
            break
    return clock


def _falls(history: Sequence[Release], left: int | None) -> bool:
    """Whether a flag goes back, so that what it reached before means nothing now."""
    last = history[-1][0] if history else None
    return last is not None and left is not None and left < last


def _cells(region: Region, access: Access) -> Cells:
    """Return the elements of the region that an access touches, each once."""
    offsets = access.addresses.astype(np.int64) - region.start
    first = offsets // region.itemsize
    last = (offsets + access.width - 1) // region.itemsize
    reach = int((last - first).max(initial=0))
    ranges = [np.minimum(first + step, last) for step in range(reach + 1)]
    return np.unique(np.concatenate(ranges))
