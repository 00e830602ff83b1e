"""What the time of a kernel is spent on: every resource in turn, and sums of parts."""

from dataclasses import replace

import numpy as np
import pytest
from hardware import H200, with_figures
from hypothesis import given
from hypothesis import strategies as st
from kernel_works import computing, looping, moving

from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.spent import Resource, Spent, either, largest, longest_of
from comet.cost.gpu.work import (
    Exchanges,
    KernelWork,
    Loops,
    MovedBytes,
    Operations,
    ProgramNeeds,
)

GPU = with_figures(H200, dependent=5e-7)
IDLE = KernelWork(132)
DEPENDENT: Resource = "dependent instructions"
TENSOR, VECTOR = Spent.on("tensor cores", 3.0), Spent.on("vector lanes", 2.0)


def test_a_sum_has_the_parts_of_both() -> None:
    both = TENSOR + VECTOR + TENSOR
    assert both.seconds == 8
    assert both.divided(0) == {"tensor cores": 6, "vector lanes": 2}
    assert both.bound == "tensor cores"


def test_of_times_that_overlap_only_the_longest_counts() -> None:
    both = longest_of(VECTOR, TENSOR)
    assert both.seconds == 3
    assert both.divided(0) == {"tensor cores": 3}
    assert longest_of(VECTOR, Spent.on("L2", 2.0)).bound == "vector lanes"


def test_another_time_has_the_same_proportions() -> None:
    longer = (TENSOR + VECTOR).lasting(10.0)
    assert longer.divided(0) == {"tensor cores": 6, "vector lanes": 4}
    assert Spent.on("L2", 0.0).lasting(0.0).divided(0) == {"L2": 0}


def test_device_memory_is_not_idle_with_few_programs() -> None:
    loads = Spent.on("device memory", 4.0)
    assert (TENSOR + loads).idling(0.5).divided(0) == {
        "tensor cores": 1.5,
        "device memory": 4,
        "idle multiprocessors": 1.5,
    }


def test_each_choice_has_its_own_parts() -> None:
    load = Spent.on("device memory", np.array([1.0, 4.0]))
    assert [largest(longest_of(TENSOR, load).divided(n)) for n in (0, 1)] == [
        "tensor cores",
        "device memory",
    ]
    first = either(np.array([True, False]), TENSOR, VECTOR)
    assert [first.divided(n) for n in (0, 1)] == [
        {"tensor cores": 3},
        {"vector lanes": 2},
    ]


@pytest.mark.parametrize(
    ("work", "bound"),
    [
        (IDLE, "launch"),
        (looping(IDLE, rounds=4), "launch"),
        (computing(IDLE, tensor=1e12), "tensor cores"),
        (computing(IDLE, vector=1e10), "vector lanes"),
        (moving(IDLE, shared=1e9), "shared memory"),
        (moving(IDLE, converted=1e9), "shared memory"),
        (moving(IDLE, l2=1e9), "L2"),
        (moving(IDLE, l2=1e9, stored=1e9), "L2"),
        (moving(IDLE, l2=1e8, device=132e8), "device memory"),
        (looping(IDLE, rounds=1000, exposed=1000), "load latency"),
        (looping(IDLE, rounds=1000, stages=30), "loop control"),
        (looping(computing(IDLE, looped=1), rounds=9999, stages=9), DEPENDENT),
        (replace(computing(IDLE, tensor=1e12), programs=40), "idle multiprocessors"),
        (replace(IDLE, exchanges=Exchanges(programs=20)), "exchange"),
    ],
)
def test_each_resource_may_bound_a_kernel(work: KernelWork, bound: Resource) -> None:
    assert kernel_time(work, GPU).spent.bound == bound


amounts = st.floats(0, 1e12)
counts = st.integers(0, 1000)


@given(
    st.tuples(amounts, amounts, amounts, amounts),
    st.tuples(counts, counts, st.integers(1, 5), st.booleans(), st.booleans()),
    st.integers(1, 100000),
    st.integers(1, 2),
)
def test_the_parts_add_up_to_the_time(
    sizes: tuple[float, float, float, float],
    loops: tuple[int, int, int, bool, bool],
    programs: int,
    groups: int,
) -> None:
    tensor, vector, moved, device = sizes
    rounds, exposed, stages, loads_ahead, tiles_ahead = loops
    work = KernelWork(
        programs,
        Operations(tensor, vector, vector / 2, tensor / 2),
        MovedBytes(moved, moved / 4, moved / 8, device, moved, moved, device),
        Loops(rounds, exposed, 0, 1, stages, loads_ahead, tiles_ahead),
        ProgramNeeds(groups=groups),
        Exchanges(1, 0, 1),
    )
    time = kernel_time(work, GPU).spent
    parts = time.divided(0)
    assert sum(parts.values()) == pytest.approx(float(time))
    assert min(parts.values()) > -1e-9 * float(time)
