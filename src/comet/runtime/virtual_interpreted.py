"""
The launches of `gpu`, interpreted: one launch with the programs of all ranks.

As with `scheduler`, one program runs at a time, in an order that a seed decides, and
deadlocks and races are reported.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from comet.runtime.check_ranks import Epochs, Host
from comet.runtime.engine import Actor, Engine, watched_engine
from comet.runtime.heap import Allocation, aligned_bytes
from comet.runtime.memory import Region
from comet.runtime.ranks import KernelCall, T
from comet.runtime.virtual import Device, check_on


class InterpretedDevice(Device):
    """
    Runs the programs of a launch as tasks of an engine.

    For the engine all programs and all memory are rank 0's, as on one GPU.
    """

    name = "cpu"
    actor: Actor
    """The host program of all ranks."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._capture: list[KernelCall] | None = None

    def memory(self, size: int) -> torch.Tensor:
        """Return new bytes of this process."""
        heaps = aligned_bytes(size)
        self._engine.memory.add_heap(0, heaps.data_ptr(), size)
        return heaps

    def allocated(self, rank: int, tensor: torch.Tensor, entry: Allocation) -> None:
        """Register the allocation of a rank; reports name both."""
        if tensor.nbytes:
            region = Region(
                tensor.data_ptr(),
                tensor.nbytes,
                tensor.element_size(),
                0,
                f"virtual rank {rank}'s {entry.name}",
                owner=tensor.untyped_storage(),
            )
            self._engine.memory.add(region)

    def launch(self, launch: KernelCall) -> None:
        """Run all programs to completion, interleaved; a capture only records them."""
        if self._capture is not None:
            self._capture.append(launch)
            return
        self._engine.launch(self.actor, [launch])

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats the launches without the host, as a graph."""
        self._capture = recorded = list[KernelCall]()
        launches()
        self._capture = None

        def replay() -> None:
            for launch in recorded:
                self.launch(launch)

        return replay


def on_device(
    body: Callable[[InterpretedDevice], T],
    *,
    seed: int = 0,
    resident: int | None = None,
) -> T:
    """
    Run a function that launches on an interpreted device; return its result.

    At most `resident` programs of a launch run at the same time, in their order.
    Raises `DeadlockError`, `RaceError`, `ProgramError`, or what the function raises.
    """
    engine = watched_engine(seed, resident, races=True)
    device = InterpretedDevice(engine)
    results: list[T] = []
    device.actor = engine.add_host(0, lambda: results.append(body(device)))
    engine.run()
    return results[0]


def run(
    host: Host, *, seed: int = 0, resident: int | None = None, graph: bool = False
) -> list[Epochs]:
    """
    Run a host program for all ranks; return what each computed.

    `graph`: all launches but the first are repeated without the host program.
    Raises `SymmetryError`, or what `on_device` does.
    """
    return on_device(
        lambda device: check_on(device, host, graph=graph), seed=seed, resident=resident
    )
