"""Programs of several ranks on one device, with inputs that are drawn there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from gpu_device.inputs import Lengths, drawn
from gpu_device.references import compared, reference

from comet.runtime.check import CheckResult
from comet.runtime.check_ranks import Host, Session, run_epochs
from comet.runtime.gpu import Gpu
from comet.runtime.program import Tensor
from comet.runtime.ranks import Rank
from comet.runtime.virtual import Device, SharedHost
from comet.runtime.virtual_interpreted import on_device as on_interpreted_device
from gpu_run.results import Alternative
from gpu_run.work import Order

T = TypeVar("T")

EPOCHS = 5
"""Launches that are compared with the reference, each with inputs of its own."""


class _DeviceSession(Session):
    """The host program of one rank, which keeps results where they are."""

    def __init__(self, host: Host, rank: Rank) -> None:
        super().__init__(host, rank)
        self.copies: list[tuple[torch.Tensor, ...]] = []

    def read(self) -> None:
        """Keep what the rank has computed."""
        self.copies.append(self.outputs())


@dataclass(frozen=True)
class DeviceHost(Host):
    """The host program of every rank, with inputs that are drawn on their device."""

    device: str
    lengths: Lengths

    def drawn(self, epoch: int) -> tuple[torch.Tensor, ...]:
        """Return the whole inputs of one launch, the same on every rank."""
        return drawn(self.program.inputs, self.seed + epoch, self.device, self.lengths)

    def session(self, rank: Rank) -> _DeviceSession:
        """Allocate what a rank needs for all its launches."""
        return _DeviceSession(self, rank)


def host_of(order: Order, path: str) -> DeviceHost:
    """Return the host program of a module."""
    return DeviceHost(path, order.case.seed, EPOCHS, order.device, order.lengths)


def on_device(order: Order, body: Callable[[Device], T]) -> T:
    """Return what a function returns of the device that all ranks share."""
    if order.dry_run:
        return on_interpreted_device(body, seed=order.case.seed)
    return body(Gpu())


def in_order(device: Device, found: Alternative) -> Alternative:
    """Add a remark where a kernel had too many programs to run at the same time."""
    if isinstance(device, Gpu) and device.in_order:
        names = ", ".join(device.in_order)
        found["remark"] = (
            f"{names}: more programs than the GPU runs at the same time; they start in "
            "their order"
        )
    return found


def compared_ranks(
    device: Device, host: DeviceHost, kind: str, *, graph: bool
) -> list[CheckResult]:
    """
    Launch all ranks of a program and compare every launch with torch's reference.

    `graph`: all launches but the first are replayed from a captured graph.
    """
    shared = SharedHost(device, host)
    sessions = [s for s in shared.sessions if isinstance(s, _DeviceSession)]
    run_epochs(sessions, shared.launch, host.epochs, device.captured if graph else None)
    return [
        result
        for epoch in range(host.epochs)
        for result in _judged(host, kind, [s.copies[epoch] for s in sessions], epoch)
    ]


def _judged(
    host: DeviceHost,
    kind: str,
    ranks: Sequence[tuple[torch.Tensor, ...]],
    epoch: int,
) -> list[CheckResult]:
    """Compare what all ranks computed in one launch with the reference."""
    (output,) = host.program.outputs
    expected = reference(kind, host.drawn(epoch))
    return [
        compared(whole, expected, output, 0.0)
        for whole in _joined([result for (result,) in ranks], output)
    ]


def _joined(parts: Sequence[torch.Tensor], output: Tensor) -> list[torch.Tensor]:
    """Return the whole results that the ranks hold: all copies, or the shards, one."""
    if output.split is None:
        return list(parts)
    whole = torch.cat(list(parts), dim=output.split)
    return [whole.narrow(output.split, 0, output.shape[output.split])]


def ready(device: Device, host: DeviceHost) -> Callable[[], None]:
    """Return what launches a program for all ranks once, on inputs that are there."""
    shared = SharedHost(device, host)
    for session in shared.sessions:
        for epoch in range(2):  # inputs in place have two slots
            session.write(epoch)
    launches = shared.launches()

    def launch_all() -> None:
        for launch in launches:
            device.launch(launch)

    return launch_all
