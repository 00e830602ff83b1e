"""benchmarks/gpu_device: clocks, and alternatives in turns."""

from collections.abc import Callable

import pytest
from gpu_device.timing import (
    DRY,
    Rounds,
    Timing,
    WallClock,
    Work,
    summary,
    time_graphs_in_turns,
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
        """Note the capture."""
        self.done.append("captured")
        return lambda: self.done.append("replayed")


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


def test_graphs_are_captured_and_then_replayed() -> None:
    clock = CountingClock()
    works = {"first": lambda: None, "second": lambda: None}
    time_graphs_in_turns(works, clock, Rounds(warm_up=0, counted=2), cold=True)
    assert clock.done == ["captured"] * 2 + ["replayed"] * 4


def test_quartiles() -> None:
    timing = summary([5.0, 1.0, 2.0, 4.0, 3.0])
    assert timing == Timing(3.0, 2.0, 4.0, 5)
    assert timing.as_json() == {"median": 3.0, "lower": 2.0, "upper": 4.0, "n": 5}
    assert summary([7.0]) == Timing(7.0, 7.0, 7.0, 1)


def test_a_dry_run_does_the_work_once() -> None:
    done: list[str] = []
    works = {"eager": lambda: done.append("a")}
    timings = time_in_turns(works, WallClock(), DRY, cold=True)
    graphs = time_graphs_in_turns(works, WallClock(), DRY, cold=False)
    assert done == ["a", "a"]
    assert timings["eager"].n == graphs["eager"].n == 1
    assert timings["eager"].median > 0
