"""Threads that take turns."""

import threading

import pytest

from comet.runtime.cooperative import Conductor, Task


class StuckError(Exception):
    """No task can go on."""


def stuck() -> None:
    """Raise."""
    raise StuckError


def trace(seed: int, switches: int = 4) -> str:
    """Let three tasks write their names in turns; return what is written."""
    conductor: Conductor[Task] = Conductor(seed, stuck)
    written: list[str] = []

    def body(name: str) -> None:
        for _ in range(switches):
            written.append(name)
            conductor.switch()

    for name in "abc":
        conductor.add(Task(lambda name=name: body(name)))
    conductor.run()
    return "".join(written)


def test_every_task_ends():
    assert sorted(trace(0)) == sorted("abc" * 4)


def test_the_seed_decides_the_order():
    assert trace(1) == trace(1)
    assert len({trace(seed) for seed in range(10)}) > 5


def test_nothing_to_do():
    Conductor[Task](0, stuck).run()


def test_a_task_waits_for_its_condition():
    conductor: Conductor[Task] = Conductor(0, stuck)
    written: list[str] = []

    def first() -> None:
        conductor.switch(until=lambda: "second" in written)
        written.append("first")

    def second() -> None:
        for _ in range(10):
            conductor.switch()
        written.append("second")

    for body in (first, second):
        conductor.add(Task(body))
    conductor.run()
    assert written == ["second", "first"]


def test_tasks_may_add_tasks():
    conductor: Conductor[Task] = Conductor(0, stuck)
    written: list[str] = []
    conductor.add(Task(lambda: conductor.add(Task(lambda: written.append("added")))))
    conductor.run()
    assert written == ["added"]


def test_where_no_task_can_go_on_the_others_are_unwound():
    conductor: Conductor[Task] = Conductor(0, stuck)
    unwound: list[int] = []

    def body() -> None:
        try:
            conductor.switch(until=lambda: False)
        finally:
            unwound.append(1)

    for _ in range(3):
        conductor.add(Task(body))
    before = threading.active_count()
    with pytest.raises(StuckError):
        conductor.run()
    assert len(unwound) == 3
    assert threading.active_count() <= before


def test_stuck_may_wait_for_somebody_else():
    opened: list[int] = []
    conductor: Conductor[Task] = Conductor(0, lambda: opened.append(1))
    conductor.add(Task(lambda: conductor.switch(until=lambda: len(opened) >= 3)))
    conductor.run()
    assert len(opened) == 3


def test_the_first_error_ends_all():
    conductor: Conductor[Task] = Conductor(0, stuck)

    def fail() -> None:
        conductor.switch()
        raise ValueError("no")

    conductor.add(Task(fail))
    conductor.add(Task(lambda: conductor.switch(until=lambda: False)))
    with pytest.raises(ValueError, match="no"):
        conductor.run()


def test_a_light_task_is_chosen_rarely():
    conductor: Conductor[Task] = Conductor(0, stuck)
    written: list[str] = []

    def body(name: str) -> None:
        for _ in range(20):
            written.append(name)
            conductor.switch()

    conductor.add(Task(lambda: body("a"), weight=1e-9))
    conductor.add(Task(lambda: body("b")))
    conductor.run()
    assert "".join(written).count("b" * 20) == 1
