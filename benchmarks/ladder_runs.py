"""The measurements of benchmarks/ladder.py: all ranks in one launch on one device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from gpu_device.timing import Clock, GpuClock, Rounds, time_in_turns
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

Name = TypeVar("Name")


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
    Check and time the patterns of one case, by name, in turns and with a cold L2.

    The times are medians over the rounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        ready = {
            name: _prepared(module_text(plan), Path(folder) / f"{name}.py", device)
            for name, plan in plans.items()
        }
        one_by_one = {name: each.eager for name, each in ready.items()}
        replayed = {name: each.graph for name, each in ready.items()}
        eager = time_in_turns(one_by_one, clock, rounds, cold=True)
        graph = time_in_turns(replayed, clock, rounds, cold=True)
    return {
        name: Measured(eager[name].median, graph[name].median, each.error, each.ok)
        for name, each in ready.items()
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


def gpu() -> tuple[str, Device, Clock]:
    """
    Return the name of the GPU, the GPU and a clock that shows what launches cost.

    Raises `ValueError` where torch finds none.
    """
    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU; use --predict or --dry-run")
    return torch.cuda.get_device_name(), Gpu(), GpuClock(cover=0)
