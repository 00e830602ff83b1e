"""Runs host programs and the programs of their kernels as tasks that take turns."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import torch

from comet.runtime.cooperative import Conductor, Task
from comet.runtime.deadlock import DeadlockError, Waiting, flag_name
from comet.runtime.flags import flag_value
from comet.runtime.interpreted import Kernel, observed
from comet.runtime.memory import (
    Access,
    Kind,
    MemoryMap,
    Operation,
    OutOfBoundsError,
    addresses_of,
)
from comet.runtime.progress import PROGRESS, Stage
from comet.runtime.races import RaceDetector, RaceError
from comet.runtime.ranks import KernelCall

SPINS = 500
"""This many consecutive reads of one address count as waiting for it."""

ANY_WRITE = "write"
"""The event that a program wrote something; the event of a flag is its address."""

SPREAD = 2.0
"""How much the speeds of ranks and programs differ: standard deviation of ln."""


class ProgramError(Exception):
    """A kernel raised an error, or accessed memory that it must not."""


class Actor(Task):
    """The host of a rank, or one program of a kernel."""

    def __init__(
        self,
        body: Callable[[], None],
        weight: float,
        rank: int,
        name: str,
        kernel: Kernel | None = None,
        index: tuple[int, int, int] = (0, 0, 0),
    ):
        super().__init__(body, weight)
        self.rank = rank
        self.name = name
        self.kernel = kernel
        self.index = index
        self.thread_number = 0
        """Its number in the race detector."""
        self.location = "host"
        self._operation = Operation(rank, name, self.location)
        self.reason: Callable[[], str] = lambda: "has not started"
        self.last_read: tuple[int, int] = (0, 0)
        """The address it read last, and how many times in succession."""
        self.awaited: dict[int, int] = {}
        """The flags it waited for last, with the values, until it reads these flags."""

    def enter(self) -> None:
        """Make this the program that the interpreter runs."""
        if self.kernel is not None:
            self.kernel.enter(self.index)

    def operation(self) -> Operation:
        """Return the actor's operation at its current line, one object per line."""
        if self._operation.location != self.location:
            self._operation = Operation(self.rank, self.name, self.location)
        return self._operation

    def locate(self) -> str:
        """Record and return the current line of the running actor."""
        if self.kernel is not None:
            self.location = self.kernel.location()
        return self.location


@dataclass(eq=False)
class _ResidentGroup:
    """The programs of one rank's kernels, of which a limited number run at once."""

    queue: deque[Actor]
    stage: Stage
    running: int = 0


class Engine:
    """
    Observes memory operations for the interpreter, and schedules the hosts.

    Programs switch at failed polls, at atomics and at accesses to other ranks' memory.
    """

    def __init__(
        self,
        seed: int,
        stuck: Callable[[], None],
        detector: RaceDetector | None,
        memory: MemoryMap,
        resident: int | None,
    ):
        if resident is not None and resident < 1:
            raise ValueError(f"resident={resident}: at least 1 program has to run")
        self.conductor: Conductor[Actor] = Conductor(seed, stuck)
        self.memory = memory
        self._detector = detector
        self._resident = resident
        self._random = random.Random(seed)
        self._groups: list[tuple[int, _ResidentGroup]] = []
        self._writes = 0
        self.steps = 0
        """How many tasks have continued; while it is constant, nothing progresses."""

    def add_host(self, rank: int, body: Callable[[], None]) -> Actor:
        """Add the host program of a rank."""
        host = Actor(body, self._speed(), rank, "the host")
        if self._detector is not None:
            host.thread_number = self._detector.root(rank)
        self.conductor.add(host)
        return host

    def run(self) -> None:
        """Run the hosts and their kernels to completion; raise the first error."""
        with observed(self):
            self.conductor.run()

    def launch(self, host: Actor, launches: Sequence[KernelCall]) -> None:
        """Run kernels to completion; the host waits."""
        kernels = [Kernel(launch) for launch in launches]
        for kernel in kernels:
            for name, tensor in kernel.tensors():
                self.memory.add_tensor(tensor, host.rank, name)
        actors = [
            self._program(host, kernel, index)
            for kernel in kernels
            for index in kernel.indices()
        ]
        self._run_group(host, actors)
        if self._detector is not None:
            for actor in actors:
                self._detector.join(host.thread_number, actor.thread_number)

    def pause(
        self,
        reason: Callable[[], str],
        until: Callable[[], bool] | None = None,
        event: Hashable | None = None,
    ) -> None:
        """Let other tasks run; return when the condition, if any, holds."""
        actor = self.conductor.running()
        actor.reason = reason
        self.conductor.switch(until, event)
        self.steps += 1
        actor.enter()

    def host_access(self, host: Actor, kind: Kind, tensor: torch.Tensor) -> None:
        """Record that a host reads or writes a tensor."""
        self._writes += kind.writes
        if self._detector is None:
            return
        self.memory.add_tensor(tensor, host.rank, "tensor")
        access = Access(kind, addresses_of(tensor), tensor.element_size())
        operation = Operation(host.rank, host.name, f"{kind.value} of a whole tensor")
        self._detector.access(host.thread_number, access, operation)

    def host_barrier(self, hosts: Sequence[Actor]) -> None:
        """Record a barrier of these hosts."""
        if self._detector is not None:
            self._detector.barrier(host.thread_number for host in hosts)

    def waiting(self) -> list[Waiting]:
        """Return the waiting programs and hosts, with operation and reason, by rank."""
        launching = {rank for rank, _ in self._groups}
        actors = sorted(self.conductor.tasks, key=lambda actor: actor.rank)
        entries = [
            Waiting(actor.operation(), actor.reason())
            for actor in actors
            if actor.kernel is not None or actor.rank not in launching
        ]
        for _, group in self._groups:
            if group.queue:
                first = group.queue[0]
                reason = f"has no room yet, nor have {len(group.queue) - 1} after it"
                entries.append(Waiting(first.operation(), reason))
        return entries

    def before(self, access: Access) -> None:
        """Check the addresses; let other tasks run if they could see the access."""
        actor = self.conductor.running()
        actor.locate()
        remote = False
        try:
            for region, _ in self.memory.split(access):
                if region.rank != actor.rank:
                    remote = True
                    if not region.symmetric:
                        raise OutOfBoundsError(
                            f"{region.name} belongs to rank {region.rank} alone"
                        )
        except OutOfBoundsError as error:
            what = f"{access.kind.value} out of bounds: {error}"
            self.conductor.fail(self._error(actor, actor.location, what))
        if remote or (access.kind.atomic and not _reads_awaited_flags(actor, access)):
            self.pause(lambda: "can go on")

    def after(self, access: Access) -> None:
        """Check for races; detect programs that poll without `wait`."""
        actor = self.conductor.running()
        if self._detector is not None:
            operation = actor.operation()
            seen = _with_awaited(actor, access)
            try:
                self._detector.access(actor.thread_number, seen, operation)
            except RaceError as error:
                self.conductor.fail(error)
        if access.kind.writes:
            self._writes += 1
            actor.last_read = (0, 0)
            self._notify(access)
        elif access.addresses.size:
            self._count_read(actor, int(access.addresses[0]))

    def fence(self) -> None:
        """Record a barrier of the threads inside the program."""
        if self._detector is not None:
            self._detector.fence(self.conductor.running().thread_number)

    def poll(self, address: int, width: int, value: int) -> None:
        """Wait until a flag is at least the value."""

        def reason() -> str:
            name, now = flag_name(self.memory, address), flag_value(address, width)
            return f"waits for {name} to reach {value}; it is {now}"

        self.conductor.running().locate()
        self.pause(reason, lambda: flag_value(address, width) >= value, address)
        self.conductor.running().awaited[address] = value

    def _notify(self, access: Access) -> None:
        """Wake the tasks that wait for these addresses, or for any write."""
        self.conductor.notify(ANY_WRITE)
        if access.addresses.size == 1:
            self.conductor.notify(access.low)
        elif access.addresses.size:
            written = range(access.low, access.end)
            for event in self.conductor.awaited():
                if isinstance(event, int) and event in written:
                    self.conductor.notify(event)

    def _count_read(self, actor: Actor, address: int) -> None:
        last, count = actor.last_read
        actor.last_read = (address, count + 1 if address == last else 1)
        if actor.last_read[1] < SPINS:
            return
        seen = self._writes
        name = flag_name(self.memory, address)
        reason = f"reads {name} again and again, which nobody changes"
        self.pause(lambda: reason, lambda: self._writes != seen, ANY_WRITE)
        actor.last_read = (0, 0)

    def _program(
        self, host: Actor, kernel: Kernel, index: tuple[int, int, int]
    ) -> Actor:
        name = f"{kernel.name}, program {index}"
        weight = host.weight * self._speed()
        actor = Actor(lambda: None, weight, host.rank, name, kernel, index)
        actor.location = kernel.file
        if self._detector is not None:
            actor.thread_number = self._detector.fork(host.thread_number)
        return actor

    def _run_group(self, host: Actor, actors: Sequence[Actor]) -> None:
        group = _ResidentGroup(deque(actors), PROGRESS.launch(len(actors)))
        entry = (host.rank, group)
        self._groups.append(entry)
        for actor in actors:
            actor.body = self._body(actor, group)
        for _ in range(self._resident or len(actors)):
            self._start_next(group)
        reason = "waits for the kernels it launched"
        self.pause(lambda: reason, lambda: not group.running, group)
        self._groups.remove(entry)

    def _start_next(self, group: _ResidentGroup) -> None:
        if group.queue:
            group.running += 1
            self.conductor.add(group.queue.popleft())

    def _body(self, actor: Actor, group: _ResidentGroup) -> Callable[[], None]:
        kernel = actor.kernel

        def run() -> None:
            assert kernel is not None
            actor.enter()
            try:
                kernel.run()
            except Exception as error:
                raise self._error(
                    actor, kernel.location_of(error), str(error)
                ) from error
            group.stage.end()
            group.running -= 1
            self._start_next(group)
            self.conductor.notify(group)

        return run

    def _speed(self) -> float:
        return self._random.lognormvariate(0.0, SPREAD)

    def _error(self, actor: Actor, location: str, what: str) -> ProgramError:
        return ProgramError(f"{Operation(actor.rank, actor.name, location)}: {what}")


def watched_engine(seed: int, resident: int | None, *, races: bool) -> Engine:
    """Return an engine for all ranks that finds deadlocks and, if `races`, races."""
    memory = MemoryMap()
    detector = RaceDetector(memory) if races else None

    def stuck() -> None:
        raise DeadlockError(engine.waiting(), "deadlock: no program can go on")

    engine = Engine(seed, stuck, detector, memory, resident)
    return engine


def _reads_awaited_flags(actor: Actor, access: Access) -> bool:
    """Whether the actor reads the flags that it has just waited for."""
    if access.kind is not Kind.ATOMIC_READ or not actor.awaited:
        return False
    return all(address in actor.awaited for address in access.addresses.tolist())


def _with_awaited(actor: Actor, access: Access) -> Access:
    """Return an acquire with the value that its program waited for there."""
    awaited, actor.awaited = actor.awaited, {}
    if not awaited:
        return access
    values = {awaited.get(address) for address in access.addresses.tolist()}
    return replace(access, awaited=values.pop()) if len(values) == 1 else access
