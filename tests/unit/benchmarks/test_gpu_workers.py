"""benchmarks/gpu_run/workers.py: tasks in processes that may be lost."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from covering import one_of
from gpu_run.workers import Outcome, Task, Workers
from worker_tasks import LONG, crash, fail, fail_somewhere, hang, process_of, stop

Value: TypeAlias = tuple[int, int] | None
"""A number, and the process that was given it."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def task(number: int, limit: float = LONG) -> Task[Value]:
    return Task(str(number), process_of, (number,), limit)


def done(outcomes: list[Outcome[Value]]) -> list[tuple[int, int]]:
    return [outcome.value for outcome in outcomes if outcome.value is not None]


def test_a_process_is_used_again(log: Path) -> None:
    with Workers[Value](1, log) as workers:
        outcomes = list(workers.outcomes([task(0), task(1)]))
        outcomes += workers.outcomes([task(2)])
    assert [number for number, _ in done(outcomes)] == [0, 1, 2]
    assert len({process for _, process in done(outcomes)}) == 1
    assert log.read_text().splitlines() == ["said in 0", "said in 1", "said in 2"]


def test_processes_work_at_the_same_time(log: Path) -> None:
    with Workers[Value](2, log) as workers:
        found = done(list(workers.outcomes([task(0), task(1), task(2)])))
    assert sorted(number for number, _ in found) == [0, 1, 2]
    assert len({process for _, process in found}) == 2


@one_of(4)
@pytest.mark.parametrize(
    ("function", "limit", "reason"),
    [
        (crash, LONG, "its process ended with code 7"),
        (stop, LONG, "its process was ended by SIGABRT"),
        (fail, LONG, "ArithmeticError: no room"),
        (fail_somewhere, LONG, "ArithmeticError: at 15:14: no room"),
        (hang, 0.5, "it took longer than 0.5 s"),
    ],
)
def test_what_is_lost_is_replaced(
    function: Callable[[], None], limit: float, reason: str, log: Path
) -> None:
    tasks: list[Task[Value]] = [task(0), Task("lost", function, (), limit), task(1)]
    with Workers[Value](1, log) as workers:
        outcomes = list(workers.outcomes(tasks))
    found = [(outcome.key, outcome.lost) for outcome in outcomes]
    assert found == [("0", ""), ("lost", reason), ("1", "")]
    assert len({process for _, process in done(outcomes)}) == 2


def test_a_deadline_loses_nothing(log: Path) -> None:
    """What it cuts short, or comes after it, has no outcome: it can be done later."""
    tasks: list[Task[Value]] = [task(0), Task("cut", hang, (), LONG), task(1)]
    with Workers[Value](1, log) as workers:
        (first,) = workers.outcomes([task(0)])
        assert first.key == "0"
        assert not list(workers.outcomes(tasks[1:], time.monotonic() + 0.5))
        assert not list(workers.outcomes([task(2)], time.monotonic() - 1))


def test_processes_end_with_their_owner(log: Path) -> None:
    with Workers[Value](1, log) as workers:
        (outcome,) = workers.outcomes([task(0)])
    assert outcome.value is not None
    with pytest.raises(ProcessLookupError):
        os.kill(outcome.value[1], 0)
