"""The time of a launch whose programs are those of several nodes."""

from dataclasses import replace

import numpy as np
import pytest
from hardware import H200 as GPU
from kernel_works import looping, moving, needing

from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.shared_launch import running_time
from comet.cost.gpu.work import (
    KernelWork,
    Loops,
    MovedBytes,
    Operations,
    ProgramNeeds,
    in_one_launch,
)


def work(programs: int) -> KernelWork:
    """Return the work of a product whose programs fill a multiprocessor each."""
    return KernelWork(
        programs,
        Operations(tensor=2**24, vector=2**14),
        MovedBytes(l2=2**16, shared=2**18, device=programs * 2**14),
        Loops(rounds=32, stages=3),
        ProgramNeeds(shared=150_000),
    )


def drawn(rng: np.random.Generator) -> KernelWork:
    """Return the work of a product with random numbers."""
    found = looping(work(int(rng.integers(1, 500))), rounds=float(rng.integers(1, 200)))
    found = moving(
        found, device=rng.uniform(2.0**12, 2.0**28), l2=rng.uniform(2.0**10, 2.0**20)
    )
    return needing(found, shared=float(rng.integers(10_000, 200_000)))


def alone(each: KernelWork) -> float:
    return float(kernel_time(each, GPU).seconds) - GPU.times.launch


@pytest.mark.parametrize("programs", [1, 7, 132, 133, 1000])
def test_one_node_takes_its_time_alone(programs: int):
    found = running_time([work(programs)], GPU)
    assert float(found) == pytest.approx(alone(work(programs)))


@pytest.mark.parametrize(("nodes", "programs"), [(2, 12), (5, 24), (3, 100), (4, 132)])
def test_equal_nodes_are_one_with_all_programs(nodes: int, programs: int):
    found = running_time([work(programs)] * nodes, GPU)
    assert float(found) == pytest.approx(alone(work(nodes * programs)), rel=0.02)


def test_few_programs_run_beside_those_of_a_long_node():
    long, short = looping(work(20), rounds=200), work(20)
    assert float(running_time([long, short], GPU)) == pytest.approx(alone(long))


def test_what_all_nodes_move_adds_up():
    """Each of two nodes on half of the GPU takes all of the rate of memory."""
    node = moving(work(66), device=2.0**30)
    least = 2 * 2**30 / GPU.memory.hbm_bandwidth
    assert float(running_time([node, node], GPU)) >= least


def test_a_launch_is_between_its_longest_node_and_one_node_after_another():
    rng = np.random.default_rng(5)
    for _ in range(200):
        nodes = in_one_launch([drawn(rng) for _ in range(int(rng.integers(1, 6)))])
        times = [alone(node) for node in nodes]
        found = float(running_time(nodes, GPU))
        assert max(times) <= found * (1 + 1e-9)
        assert found <= sum(times) * (1 + 1e-9)


def test_arrays_and_numbers_agree():
    counts = np.array([3.0, 60.0, 400.0])
    of_arrays = running_time([replace(work(1), programs=counts), work(50)], GPU)
    one_by_one = [float(running_time([work(int(n)), work(50)], GPU)) for n in counts]
    assert of_arrays.seconds == pytest.approx(one_by_one)


def test_a_program_that_does_not_fit_takes_forever():
    large = needing(work(1), shared=10**6)
    assert float(running_time([work(1), large], GPU)) == float("inf")
