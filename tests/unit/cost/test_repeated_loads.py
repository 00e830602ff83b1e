"""A tile that two loops of one trip load is loaded once."""

import pytest
from hardware import H200
from paths import SAMPLES
from register_ops import ROWS, kernel_of

import comet
from comet.cost.gpu.registers import LaunchNumbers, unmasked_loop_registers
from comet.cost.gpu.summary import KernelSummary

LOOPS = "stream,fuse{strategy=partial}"
COLUMNS = 8192
TILE = 2 * COLUMNS
"""Bytes of a row of x, of gamma, of beta, and of the result."""


@pytest.fixture(scope="module")
def layernorm() -> KernelSummary:
    path = SAMPLES / "hardware" / "h200x1.yaml"
    module = comet.compile(comet.parse(ROWS["layernorm"]), path, LOOPS).module
    return kernel_of(module)[1]


def test_rows_in_one_tile_are_loaded_once(layernorm: KernelSummary):
    assert layernorm.moved({"M": 1.0, "N": float(COLUMNS)}) == 4 * TILE


def test_loops_of_several_trips_load_rows_again(layernorm: KernelSummary):
    loops = sum(load.dims == ("M", "N") for load in layernorm.moves.loads)
    assert loops >= 2
    found = layernorm.moved({"M": 1.0, "N": COLUMNS / 2})
    assert found == (3 + loops) * TILE


def test_a_loop_that_loads_nothing_else_does_not_wait(layernorm: KernelSummary):
    """The last loop waits for gamma and beta, those before it for rows alone."""
    whole = {"M": 1.0, "N": float(COLUMNS)}
    assert layernorm.iterations(whole) == layernorm.exposed(whole) == 2
    halves = {"M": 1.0, "N": COLUMNS / 2}
    loops = sum(load.dims == ("M", "N") for load in layernorm.moves.loads)
    assert layernorm.exposed(halves) == 2 * loops


@pytest.mark.parametrize(("columns", "loads"), [(COLUMNS, 0), (COLUMNS / 8, 1)])
def test_loops_without_mask_start_at_the_same_offsets(
    layernorm: KernelSummary, columns: float, loads: int
):
    """128 threads copy 8 x 1024 numbers of 16 bits by 8 copies, two tiles ahead."""
    again = loads * (sum(load.dims == ("M", "N") for load in layernorm.moves.loads) - 1)
    blocks, numbers = {"M": 8.0, "N": columns}, LaunchNumbers(4, 3)
    found = unmasked_loop_registers(layernorm, blocks, numbers, H200)
    assert found == H200.triton.loops.second_loop_registers + 2 * 8 * again
