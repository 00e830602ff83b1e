"""Tasks that forked processes do ahead of a search."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep

import pytest
from forgetting import forget_kernels
from gpu_graphs import H200
from semantics import parse_module, run_passes
from transformer_blocks import SIZES, norm_and_mlp

from comet.passes.schedule.fuse.gpu import trial
from comet.passes.search import session
from comet.passes.search.ahead import ahead, processes, processes_here


@contextmanager
def searching(count: int) -> Generator[None]:
    """Let so many processes search."""
    with session() as current:
        outer, current.processes = current.processes, count
        try:
            yield
        finally:
            current.processes = outer


def results(tasks: Sequence[Callable[[], int]], count: int) -> list[int]:
    with searching(count), ahead(tasks) as done:
        return [done.result(number) for number in range(len(tasks))]


def slow_square(number: int) -> int:
    sleep(0.01)
    return number**2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_those_of_one_process(count: int):
    tasks = [partial(slow_square, number) for number in range(7)]
    assert results(tasks, count) == [number**2 for number in range(7)]


def test_several_processes_do_tasks():
    def busy() -> int:
        sleep(0.1)
        return os.getpid()

    assert len(set(results([busy] * 4, 2))) == 2
    assert set(results([busy] * 2, 1)) == {os.getpid()}
    with searching(2), ahead([busy] * 3, fewest=4) as done:
        assert {done.result(number) for number in range(3)} == {os.getpid()}


def test_a_large_result_arrives():
    sizes = [3 << 20, 5 << 20]

    def large(size: int) -> bytes:
        sleep(0.05)
        return bytes(size)

    with searching(2), ahead([partial(large, size) for size in sizes]) as done:
        assert [len(done.result(number)) for number in range(2)] == sizes


def test_an_error_of_another_process_arrives():
    def fail() -> int:
        sleep(0.05)
        raise ValueError("no kernel")

    with searching(2), ahead([partial(slow_square, 3), fail]) as done:
        assert done.result(0) == 9
        with pytest.raises(ValueError, match="no kernel"):
            done.result(1)


def test_an_error_of_another_process_is_raised_before_its_next_task_ends():
    def fail() -> int:
        sleep(0.05)
        raise ValueError("no kernel")

    def endless() -> int:
        if os.getpid() != parent:
            sleep(60)
        return 0

    parent, start = os.getpid(), monotonic()
    with searching(2), ahead([fail, fail, endless, endless]) as done:
        for number in range(2):
            with pytest.raises(ValueError, match="no kernel"):
                done.result(number)
    assert monotonic() - start < 30


def test_a_task_of_a_process_that_died_is_done_here():
    parent = os.getpid()

    def die_elsewhere() -> int:
        sleep(0.05)
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1

    assert results([die_elsewhere] * 3, 2) == [1, 1, 1]


def test_tasks_fork_no_processes():
    def asked() -> int:
        sleep(0.05)
        return processes()

    assert results([asked, asked], 2) == [1, 1]


def test_processes_end_with_the_body():
    def endless() -> int:
        sleep(60)
        return 0

    start = monotonic()
    with searching(2), ahead([endless, endless]):
        pass
    assert monotonic() - start < 30


def test_a_search_with_a_deadline_forks_none():
    with searching(2), session() as current:
        assert processes() == 2
        with current.until(monotonic() + 60):
            assert processes() == 1


def test_a_process_with_threads_or_torch_forks_none(monkeypatch: pytest.MonkeyPatch):
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    assert processes_here() == 1
    over.set()
    thread.join()
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert processes_here() == 1


def test_a_process_with_one_core_forks_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    def one_core(_: int) -> set[int]:
        return {0}

    monkeypatch.setattr(os, "sched_getaffinity", one_core)
    assert processes_here() == 1


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param("triton-distributed", id="priced, and a split tried on copies"),
        pytest.param("decompose,stream,fuse{strategy=none}", id="lowered"),
    ],
)
def test_kernels_are_the_same_with_several_processes(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
):
    text = norm_and_mlp({**SIZES, "F": 256})
    found, forks = list[str](), list[int]()
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(fork()) or forks[-1])
    monkeypatch.setattr(trial, "FEWEST_LOWERED", 2)
    for count in (1, 2):
        forget_kernels(monkeypatch)
        with searching(count):
            module = run_passes(parse_module(text), f"{H200},{pipeline}")
        found.append(str(module))
    assert forks  # Fewer if this process has fused what it asks for again.
    assert found[0] == found[1]
