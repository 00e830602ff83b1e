"""Programs that store the product of some rows, and read it again to normalize it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from covering import one_of
from gpu_programs import of_one_rank
from hardware import with_figures
from ladder_programs import Case, after_passes, predicted_times
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.from_ir.traffic import traffic_of
from comet.cost.gpu.capacity import fits
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.tiling import kernel_work, written_bytes
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.dataflow import ProgramOp
from comet.dialects.schedule import SpatialOp

ROWS = {"M": 32768, "N": 512, "K": 1024}
LEFT = 2 * ROWS["M"] * ROWS["K"]
TALL = "p: M=128 warps=8 stages=3 group=1; m_n: N=4; c_wide_k: K=16; p_n: N=4"
WIDE = "p: M=256 warps=8 stages=3 group=1; m_n: N=2; c_wide_k: K=16; p_n: N=2"
STORED = {"strategy": "partial", "between": "spill", "narrow": "c"}


def plan(factors: str, **options: str) -> ModuleOp:
    """Return the launch plan of GEMM-softmax on an H200, with given tiles."""
    program = of_one_rank("gemm_softmax", ROWS, "float16")
    compiler = replace(program.compiler, factors=factors, **options)
    return after_passes(Case("", 1, program.text), program.hardware, [compiler])


def program_in(module: ModuleOp) -> ProgramOp:
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    return program


@one_of(2)
@pytest.mark.parametrize(("factors", "times"), [(TALL, 4), (WIDE, 1)])
def test_rows_that_l2_cannot_hold_are_loaded_for_each_tile(factors: str, times: int):
    """128 programs with 256 rows each need 64 MB of L2; 132 with 128 need 33 MB."""
    module = plan(factors, **STORED)
    traffic = traffic_of(program_in(module), attached_system(module))
    assert traffic.device["a"] == times * LEFT
    assert traffic.l2["a"] == (4 if factors == TALL else 2) * LEFT


def test_tiles_with_more_rows_are_slower():
    """Measured on an H200: 124.0 and 106.8 us (`tests/data/h200.json`)."""
    tall, wide = (predicted_times(plan(f, **STORED)).eager for f in (TALL, WIDE))
    assert tall > 1.1 * wide


def test_wide_stored_rows_are_not_admitted():
    """Tiles of 128 x 256 spill 48 bytes by Triton 3.9 and 248 by 3.6, for sm_90."""
    for columns, admitted in ((2, False), (4, True)):
        loops = f"m_n: N={columns}; c_wide_k: K=16; p_n: N={columns}"
        module = plan(f"p: M=256 warps=8 stages=2 group=1; {loops}", **STORED)
        (node,) = (op for op in module.walk() if isinstance(op, SpatialOp))
        system = attached_system(module)
        gpu = device_of(system)
        summary = summarize(node, gpu_levels(system), gpu)
        work = kernel_work(summary, tile_blocks(node), LaunchNumbers(8, 2), gpu)
        assert bool(fits(summary, tile_blocks(node), work.needs, gpu)) == admitted


def test_what_is_stored_ends_with_the_rows():
    """Tiles of 64 x 64 of a result of 100 x 100; the others are no store."""
    program = of_one_rank("gemm", {"M": 100, "N": 100, "K": 64}, "float16")
    compiler = replace(program.compiler, factors="c: M=2 N=2")
    module = after_passes(Case("", 1, program.text), program.hardware, [compiler])
    (node,) = (op for op in module.walk() if isinstance(op, SpatialOp) and op.is_grid)
    system = attached_system(module)
    summary = summarize(node, gpu_levels(system), device_of(system))
    blocks = tile_blocks(node)
    assert blocks == {"M": 64, "N": 64, "K": 64}
    assert written_bytes(summary, blocks) == 2 * 100 * 100
    assert 4 * sum(map(float, summary.moved_by_stores(blocks))) == 2 * 128 * 128


def converted(module: ModuleOp, *, stored: bool = True) -> list[float]:
    """Return the bytes of the tiles of each kernel that get another layout."""
    system = attached_system(module)
    device = device_of(system)
    device = with_figures(device, stores_converted=stored)
    nodes = [op for op in module.walk() if isinstance(op, SpatialOp) and op.is_grid]
    found: list[float] = []
    for node in nodes:
        summary = summarize(node, gpu_levels(system), device)
        tiles = summary.per_program(summary.vector.converted, tile_blocks(node))
        found.append(float(tiles) * float(summary.programs(tile_blocks(node))))
    return found


def test_what_row_statistics_of_a_product_meet_gets_another_layout():
    """The product that is loaded again, and the result: not what is stored first."""
    size = 2 * ROWS["M"] * ROWS["N"]
    assert converted(plan(TALL, **STORED)) == [2 * size]
    assert converted(plan(TALL, **STORED), stored=False) == [size]
    apart = "c: M=256 N=2 warps=8 stages=3 group=8; c_wide_k: K=16; p: M=512"
    assert converted(plan(apart, strategy="none", narrow="c")) == [0, 0]
