"""
The price of programs that are clusters, against kernels that ptxas compiled for sm_90.

`tests/data/cluster_registers.csv` was written by `benchmarks/cluster_registers.py`,
with Triton 3.8 and 3.9.
"""

from dataclasses import replace

import pytest
from exchange_tables import Row, cluster_rows
from kernel_works import needing

from comet.cost.gpu.capacity import shared_need
from comet.cost.gpu.clusters import reduction_steps
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import kernel_work, price
from comet.cost.gpu.work import Exchanges

VERSIONS = ("3.8", "3.9")
LEFT = 250
"""Kernels with fewer registers have some left."""


def found(triton: str) -> list[Row]:
    """Return the kernels of a version, of which there are enough."""
    listed = list(cluster_rows(triton))
    assert len(listed) >= 40
    return listed


@pytest.mark.parametrize("triton", VERSIONS)
def test_no_kernel_that_the_model_admits_spills(triton: str):
    admitted = [row for row in found(triton) if row.admitted]
    assert len(admitted) >= 20
    assert all(row.spilled == 0 for row in admitted)


@pytest.mark.parametrize(("triton", "low", "high"), [("3.8", 35, 15), ("3.9", 30, 65)])
def test_registers_are_those_of_a_thread_block(triton: str, low: int, high: int):
    """
    The most by which an estimate is too low, and too high.

    From Triton 3.9 on, ptxas may keep only a part of what a thread stores.
    """
    errors = [
        row.registers - row.expected for row in found(triton) if row.registers < LEFT
    ]
    assert max(errors) <= low
    assert min(errors) >= -high


def inputs(row: Row) -> tuple[Blocks, LaunchNumbers, Device]:
    """Return the blocks, launch numbers and GPU of a kernel."""
    return row.blocks, row.numbers, row.gpu


@pytest.mark.parametrize("triton", VERSIONS)
def test_shared_memory_is_that_of_a_thread_block(triton: str):
    """All rows of the left operand, and its part of the columns of the right one."""
    for row in found(triton):
        need = shared_need(row.summary, row.blocks, row.numbers.stages, row.gpu)
        assert float(need) == row.shared


@pytest.mark.parametrize("triton", VERSIONS)
def test_blocks_reduce_rows_in_as_many_steps_as_compiled(triton: str):
    """A step of each of the two reductions loads once from other blocks."""
    for row in found(triton):
        numbers = row.numbers
        steps = reduction_steps(
            row.summary, row.blocks, numbers.warps, numbers.cluster, row.gpu
        )
        assert 2 * float(steps) == row.remote


def test_blocks_of_a_cluster_are_programs_that_exchange():
    """Four times the programs with a fourth of the columns, and all rows of A each."""
    row = next(r for r in cluster_rows("3.8") if r.numbers.cluster == 4)
    alone = LaunchNumbers(row.numbers.warps, row.numbers.stages)
    one = kernel_work(row.summary, row.blocks, alone, row.gpu)
    work = kernel_work(row.summary, row.blocks, row.numbers, row.gpu)
    assert float(work.programs) == 4 * float(one.programs)
    assert float(work.moved.l2) == float(one.moved.l2)
    assert (float(one.exchanges.clusters), float(work.exchanges.clusters)) == (0, 4)
    seconds = [float(kernel_time(each, row.gpu).exchange) for each in (one, work)]
    waves = -(-float(work.programs) // (row.gpu.multiprocessors * resident(row)))
    assert seconds == pytest.approx([0, waves * 4 * 0.25e-6])


def test_exchanges_of_one_choice_are_numbers_that_caches_can_hash():
    row = next(r for r in cluster_rows("3.8") if r.numbers.cluster == 4)
    work = kernel_work(row.summary, row.blocks, row.numbers, row.gpu)
    assert {work.exchanges: 4}[replace(work.exchanges)] == 4


def resident(row: Row) -> int:
    """Return how many thread blocks a multiprocessor runs at a time."""
    used = -(-row.registers // 8) * 8 * 32 * row.numbers.warps * 4
    shared = row.shared + row.gpu.limits.reserved_bytes
    return int(min(row.gpu.limits.register_bytes // used, 228 * 1024 // shared))


def test_multiprocessors_that_no_cluster_fills_idle():
    """Clusters of 8 leave 4 of 132 multiprocessors, and 33 of 4 leave none."""
    row = next(r for r in cluster_rows("3.8") if r.numbers.cluster == 8)
    work = kernel_work(row.summary, row.blocks, row.numbers, row.gpu)
    work = needing(replace(work, exchanges=Exchanges()), registers=2**18)
    times = [
        float(kernel_time(replace(work, programs=programs), row.gpu).seconds)
        for programs in (128, 132)
    ]
    assert times[1] > 1.5 * times[0] - row.gpu.times.launch
    four = replace(work, together=4, programs=132)
    assert float(kernel_time(four, row.gpu).seconds) == pytest.approx(times[0], rel=0.1)


def test_groups_run_whole():
    """33 groups of 16 programs take five turns of 8 on 132 multiprocessors."""
    row = next(iter(cluster_rows("3.8")))
    work = kernel_work(row.summary, row.blocks, row.numbers, row.gpu)
    work = needing(replace(work, exchanges=Exchanges(programs=1)), registers=2**18)
    for groups, turns in ((32, 4), (33, 5)):
        grouped = replace(work, programs=16 * groups, together=16)
        found = kernel_time(grouped, row.gpu).exchange.seconds
        assert float(found) == pytest.approx(turns * row.gpu.times.exchange)


def test_a_cluster_is_priced_as_one():
    row = next(r for r in cluster_rows("3.8") if r.numbers.cluster == 4)
    assert float(price(row.summary, *inputs(row)).exchange) > 0
