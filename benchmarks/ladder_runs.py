"""The measurements of benchmarks/ladder.py: all ranks in one launch on one device."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from comet.codegen.triton import emitted
from comet.passes.lower_channels import LowerChannelsPass
from comet.passes.lower_to_triton import LowerToTritonPass
from comet.passes.verify_sync import VerifySyncPass
from comet.runtime.check_ranks import Host, check_ranks
from comet.runtime.gpu import Gpu
from comet.runtime.virtual import Device, SharedHost, check_on

LAUNCHES = 3
"""Launches that are compared with the reference, two of them replays."""

CACHE = 256 * 2**20
"""Bytes that are written between two measurements, so that no cache helps."""

Name = TypeVar("Name")


class Clock(Protocol):
    """Measures on a device."""

    def seconds(self, work: Callable[[], None]) -> float:
        """Return how long the device takes for this work."""
        ...


class GpuClock:
    """Events on the stream of a GPU."""

    def __init__(self) -> None:
        self._cache = torch.empty(CACHE, dtype=torch.uint8, device="cuda")

    def seconds(self, work: Callable[[], None]) -> float:
        """Return the time between two events around the work, caches cold."""
        self._cache.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        return 1e-3 * start.elapsed_time(end)


class WallClock:
    """The clock on the wall: shows that all steps work, and nothing else."""

    def seconds(self, work: Callable[[], None]) -> float:
        """Return the time that the work takes on the CPU."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start


@dataclass(frozen=True)
class Measured:
    """Seconds of one pattern, launched one by one and as a captured graph."""

    eager: float
    graph: float
    error: float
    """The largest relative error, replays included."""
    ok: bool
    """Whether it is within the tolerance of the element types."""


@dataclass(frozen=True)
class Rounds:
    """How often each pattern is launched."""

    warm_up: int = 20
    counted: int = 100


@dataclass(frozen=True)
class _Ready:
    """A pattern that was checked, and can be launched again and again."""

    eager: Callable[[], None]
    graph: Callable[[], None]
    error: float
    ok: bool


def module_text(plan: ModuleOp) -> str:
    """Return the Triton module of a program with channels."""
    module = plan.clone()
    passes = (LowerChannelsPass(), VerifySyncPass(), LowerToTritonPass())
    PassPipeline(passes).apply(Context(), module)
    return emitted(module)


def measured(
    plans: Mapping[Name, ModuleOp],
    device: Device,
    clock: Clock,
    rounds: Rounds = Rounds(),
) -> dict[Name, Measured]:
    """
    Check and time the patterns of one case, by name.

    In each round every pattern is launched once, so that whatever drifts drifts for
    all. The times are medians over the rounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        ready = {
            name: _prepared(module_text(plan), Path(folder) / f"{name}.py", device)
            for name, plan in plans.items()
        }
        eager = medians([each.eager for each in ready.values()], clock, rounds)
        graph = medians([each.graph for each in ready.values()], clock, rounds)
    return {
        name: Measured(own_eager, own_graph, each.error, each.ok)
        for (name, each), own_eager, own_graph in zip(
            ready.items(), eager, graph, strict=True
        )
    }


def _prepared(text: str, path: Path, device: Device) -> _Ready:
    """Check a module, launch it, and capture that."""
    path.write_text(text)
    checked = check_ranks(str(path), 0, LAUNCHES, partial(_replayed, device))
    shared = SharedHost(device, Host(str(path), seed=0, epochs=1))
    for session in shared.sessions:
        for epoch in range(2):  # inputs in place have two slots
            session.write(epoch)
    launches = shared.launches()

    def eager() -> None:
        for launch in launches:
            device.launch(launch)

    eager()
    return _Ready(eager, device.captured(eager), checked.max_error, checked.ok)


def _replayed(device: Device, host: Host):
    return check_on(device, host, graph=True)


def medians(
    works: Sequence[Callable[[], None]], clock: Clock, rounds: Rounds
) -> list[float]:
    """Return the median time of each work; in each round all are done once."""
    times: list[list[float]] = [[] for _ in works]
    for index in range(rounds.warm_up + rounds.counted):
        for own, work in zip(times, works, strict=True):
            seconds = clock.seconds(work)
            if index >= rounds.warm_up:
                own.append(seconds)
    return [statistics.median(own) for own in times]


def gpu() -> tuple[str, Device, Clock]:
    """
    Return the name of the GPU, the GPU and its clock.

    Raises `ValueError` where torch finds none.
    """
    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU; use --predict or --dry-run")
    return torch.cuda.get_device_name(), Gpu(), GpuClock()
