"""Calls that go beyond a chunk of frames map no memory, where there is room."""

import resource

import pytest

from comet.frames import with_room

CALLS = 5000


def callee(a: int, b: int = 1, c: int = 2, d: int = 3) -> int:
    return a + b + c + d


def faults_at(depth: int) -> int:
    """Return the pages that are touched first in a loop of calls, at a depth."""
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for number in range(CALLS):
        callee(number)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def most_faults() -> int:
    return max(map(faults_at, range(300)))


def test_no_loop_of_calls_maps_memory_again_and_again():
    if most_faults() < CALLS:
        pytest.skip("this Python keeps its chunks of frames")
    assert with_room(most_faults) < CALLS / 10


def test_what_work_returns_or_raises_is_passed_on():
    assert with_room(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        with_room(lambda: 1 // 0)
