"""The time of a GPU kernel: every limit in turn, and what must hold of any kernel."""

from dataclasses import replace

import numpy as np
import pytest
from hardware import H200, with_figures
from hypothesis import given
from hypothesis import strategies as st
from kernel_works import computing, looping, moving, needing

from comet.cost.estimate import CostError
from comet.cost.gpu.kernel import kernel_time, occupancy_of, wave_count
from comet.cost.gpu.work import KernelWork, Loops, MovedBytes, Operations

GPU = with_figures(H200, tensor={"f16": 989.4e12}, vector={"f32": 66.9e12})
IDLE = KernelWork(132)


def test_an_idle_kernel_takes_its_launch_and_one_load() -> None:
    loading = looping(IDLE, rounds=1)
    seconds = 4e-6 + GPU.times.load_latency + GPU.times.iteration
    assert kernel_time(loading, GPU).seconds == pytest.approx(seconds)
    assert kernel_time(IDLE, GPU).seconds == 4e-6


def test_matrix_work_runs_at_the_matrix_rate() -> None:
    work = computing(IDLE, tensor=989.4e12 / 132)
    assert kernel_time(work, GPU).compute.seconds == pytest.approx(1.0)


def test_vector_work_is_half_the_fused_rate() -> None:
    work = computing(IDLE, vector=66.9e12 / 2 / 132)
    assert kernel_time(work, GPU).compute.seconds == pytest.approx(1.0)


def test_a_last_wave_that_is_not_full_costs_a_whole_turn() -> None:
    work = computing(IDLE, tensor=1e9)
    full, more = (kernel_time(replace(work, programs=n), GPU) for n in (132, 133))
    assert float(more.compute) == pytest.approx(2 * float(full.compute))
    assert wave_count(133, 132) == 2


def test_memories_limit_too() -> None:
    assert kernel_time(moving(IDLE, device=4.8e12), GPU).device.seconds == 1
    moved = moving(IDLE, l2=9.37e12 / 132)
    assert kernel_time(moved, GPU).l2.seconds == pytest.approx(1)
    read = moving(IDLE, shared=128 * 1.83e9)
    assert kernel_time(read, GPU).shared.seconds == pytest.approx(1)


def test_a_deeper_pipeline_waits_less() -> None:
    work = looping(IDLE, rounds=64)
    waits = [
        float(kernel_time(looping(work, stages=s), GPU).latency) for s in (1, 2, 4)
    ]
    assert waits == sorted(waits, reverse=True)


def test_loads_start_behind_what_their_loop_reads() -> None:
    """Two stages: the first of two products, a load, and no other load meanwhile."""
    product, load = 1e6 * 132 / 989.4e12, 24e3 * 132 / 9.37e12 + GPU.times.load_latency
    assert 2 * product < load

    def iteration(stages: int, read: float) -> float:
        work, more = (
            looping(computing(repeated(n), read=read * n / 64), stages=stages)
            for n in (64, 128)
        )
        short, long = (float(kernel_time(each, GPU).latency) for each in (work, more))
        return (long - short) / 64 - GPU.times.iteration

    assert iteration(2, 0) == pytest.approx(load)
    assert iteration(2, 32e6) == pytest.approx(load + product / 2)
    assert iteration(3, 32e6) == pytest.approx((load + product / 2) / 2)
    assert iteration(1, 32e6) == pytest.approx(load + product)
    passed = with_figures(GPU, copies_pass_registers=True)
    start = looping(computing(repeated(64), read=32e6), stages=2)
    unread = computing(start, read=0)
    latencies = [kernel_time(each, passed).latency for each in (start, unread)]
    assert latencies[0].seconds == latencies[1].seconds


def repeated(count: int) -> KernelWork:
    """Return the work of a loop with a number of equal iterations."""
    work = moving(computing(IDLE, tensor=count * 1e6), l2=count * 24e3)
    return looping(work, rounds=count)


def test_programs_that_do_not_fit_take_for_ever() -> None:
    large = needing(IDLE, shared=300 * 1024)
    assert occupancy_of(large, GPU) == 0
    assert kernel_time(large, GPU).seconds == np.inf
    assert occupancy_of(needing(IDLE, shared=100 * 1024), GPU) == 2
    assert occupancy_of(needing(IDLE, warps=8), GPU) == 8
    assert occupancy_of(needing(IDLE, registers=200 * 1024), GPU) == 1


def test_an_element_type_without_a_rate() -> None:
    work = computing(IDLE, tensor=1, element="f64")
    with pytest.raises(CostError, match="tensor_tflops for f64; it has f16"):
        kernel_time(work, GPU)


amounts = st.floats(0, 1e12)


@given(amounts, amounts, amounts, amounts, st.integers(1, 100000))
def test_never_below_the_roofline(
    tensor: float, vector: float, moved: float, device: float, programs: int
) -> None:
    work = KernelWork(
        programs,
        Operations(tensor, vector),
        MovedBytes(l2=moved, device=device),
        Loops(1),
    )
    seconds = float(kernel_time(work, GPU).seconds)
    assert seconds >= programs * tensor / 989.4e12
    assert seconds >= programs * moved / 9.37e12
    assert seconds >= device / 4.8e12
    faster = with_figures(GPU, hbm_bandwidth=9e12, l2_bandwidth=2e13, clock=3e9)
    assert float(kernel_time(work, faster).seconds) <= seconds


def test_many_choices_at_once() -> None:
    programs = np.array([66.0, 132.0, 1000.0])
    moved = MovedBytes(l2=1e6, device=1e9)
    work = KernelWork(programs, Operations(1e9, 1e6), moved, Loops(8))
    together = kernel_time(work, GPU).seconds
    alone = [kernel_time(replace(work, programs=n), GPU).seconds for n in programs]
    assert np.allclose(together, np.array(alone, dtype=np.float64))
