"""benchmarks/gpu_device: clocks, and alternatives in turns."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from gpu_device import timing
from gpu_device.timing import (
    DRY,
    GpuClock,
    Rounds,
    Timing,
    WallClock,
    Work,
    summary,
    time_in_turns,
)


class CountingClock:
    """A clock whose hand moves with the work."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.cold: list[bool] = []

    def seconds(self, work: Work, *, cold: bool = True) -> float:
        """Return how much was done before, in all."""
        work()
        self.cold.append(cold)
        return float(len(self.done))

    def captured(self, work: Work) -> Callable[[], None]:
        """Return what does nothing."""
        return lambda: None


@pytest.mark.parametrize("cold", [False, True])
def test_alternatives_take_turns(cold: bool) -> None:
    clock = CountingClock()
    works = {
        "first": lambda: clock.done.append("a"),
        "second": lambda: clock.done.append("b"),
    }
    timings = time_in_turns(works, clock, Rounds(warm_up=1, counted=3), cold=cold)
    assert clock.done == ["a", "b"] * 4
    assert clock.cold == [cold] * 8
    assert timings == {"first": Timing(5, 4, 6, 3), "second": Timing(6, 5, 7, 3)}


def test_quartiles() -> None:
    quartiles = summary([5.0, 1.0, 2.0, 4.0, 3.0])
    assert quartiles == Timing(3.0, 2.0, 4.0, 5)
    assert summary([7.0]) == Timing(7.0, 7.0, 7.0, 1)


def test_a_dry_run_does_the_work_once() -> None:
    done: list[str] = []
    works = {"eager": lambda: done.append("a")}
    timings = time_in_turns(works, WallClock(), DRY, cold=True)
    WallClock().captured(works["eager"])()
    assert done == ["a", "a"]
    assert timings["eager"].n == 1
    assert timings["eager"].median > 0


class Stream:
    """What is enqueued on a GPU that is not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.enqueued: list[str] = []
        monkeypatch.setattr(torch, "empty", self.buffer)
        monkeypatch.setattr(torch.cuda, "Event", self.event)
        monkeypatch.setattr(timing, "occupy", self.occupied)
        monkeypatch.setattr(torch.cuda, "synchronize", self.waited)

    def buffer(self, size: int, dtype: torch.dtype, device: str) -> "Buffer":
        """Return memory for a cache."""
        assert (dtype, device) == (torch.uint8, "cuda")
        return Buffer(self.enqueued)

    def event(self, enable_timing: bool) -> "Event":
        """Return an event that knows the time."""
        assert enable_timing
        return Event(self.enqueued)

    def waited(self) -> None:
        """Note that the GPU has nothing to do."""
        self.enqueued.append("idle")

    def occupied(self, seconds: float) -> None:
        """Note for how long the GPU is busy."""
        self.enqueued.append(f"busy {seconds}")


@dataclass
class Buffer:
    """Memory that can be overwritten."""

    enqueued: list[str]

    def zero_(self) -> None:
        """Note it."""
        self.enqueued.append("flush")


@dataclass
class Event:
    """A point of the stream."""

    enqueued: list[str]

    def record(self) -> None:
        """Note it."""
        self.enqueued.append("event")

    def synchronize(self) -> None:
        """Note that the CPU waits."""
        self.enqueued.append("wait")

    def elapsed_time(self, end: "Event") -> float:
        """Return milliseconds."""
        return 2.0


@pytest.mark.parametrize(
    ("cover", "cold", "before"),
    [
        (0.5, True, ["flush", "busy 0.5"]),
        (0.5, False, ["busy 0.5"]),
        (0, True, ["flush", "idle"]),
        (0, False, ["idle"]),
    ],
)
def test_the_gpu_is_busy_while_work_is_enqueued(
    cover: float, cold: bool, before: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(monkeypatch)
    clock = GpuClock(cover)
    seconds = clock.seconds(lambda: stream.enqueued.append("work"), cold=cold)
    assert stream.enqueued == [*before, "event", "work", "event", "wait"]
    assert seconds == pytest.approx(2e-3)
