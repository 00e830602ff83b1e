"""What scattered sums cost: a launch that makes zeros, and sums that are read, too."""

import pytest
from gather_programs import gathered, tensor
from semantics import parse_module, run_passes
from triton_modules import hardware

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.from_ir.program import launch_plan_of
from comet.cost.gpu.device import Device
from comet.cost.gpu.launch_plan import Clear
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.tiling import kernel_work
from comet.cost.gpu.work import KernelWork
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes

H200 = hardware("h200x1.yaml")
TOKENS, WIDTH = 4096, 1024


def text(rows: int) -> str:
    """Return exponentials that are added to so many rows."""
    table, ids = {"V": rows, "D": WIDTH}, {"T": TOKENS}
    values, sums = tensor(gathered(table, "V", ids)), tensor(table)
    return f"""
    func.func @main(%x: {values}, %i: {tensor(ids, "i32")}) -> {sums} {{
      %e = compound.map exp %x : {values} -> {values}
      %r = compound.scatter_add %e, %i into "V"
        : {values}, {tensor(ids, "i32")} -> {sums}
      func.return %r : {sums}
    }}"""


def priced(rows: int) -> tuple[KernelWork, Device]:
    """Return the work of the kernel that adds."""
    module = run_passes(parse_module(text(rows)), f"{H200},fuse,tile")
    system, (func,) = attached_system(module), compute_functions(module)
    (node,), gpu = grid_nodes(func), device_of(system)
    summary = summarize(node, gpu_levels(system), gpu)
    return kernel_work(summary, tile_blocks(node), LaunchNumbers(4, 3), gpu), gpu


@pytest.mark.parametrize("rows", [8 * TOKENS, TOKENS // 8])
def test_sums_are_read_and_written(rows: int):
    work, _ = priced(rows)
    values, ids = TOKENS * WIDTH * 4, TOKENS * 4
    touched = min(rows, TOKENS) * WIDTH * 4
    assert float(work.moved.device) == values + 2 * touched + ids
    moved = float(work.programs) * float(work.moved.l2)
    assert moved >= 3 * values


def test_zeros_are_a_launch_and_their_bytes():
    rows = 32000
    module = run_passes(
        parse_module(text(rows)), f"{H200},fuse,tile,outline-kernels,annotate-cost"
    )
    system, (func,) = attached_system(module), compute_functions(module)
    (program,) = (op for op in func.walk() if isinstance(op, ProgramOp))
    zeros, kernel = launch_plan_of(program, system)
    assert zeros == Clear("clear 1", rows * WIDTH * 4)
    assert kernel.name == "main_kernel"
    work, gpu = priced(rows)
    found = estimate_of(func)
    assert found is not None
    assert found.launch_tax is not None
    assert found.launch_tax == pytest.approx(2 * gpu.times.launch * 1e9)
    moved = rows * WIDTH * 4 + float(work.moved.device)
    assert (
        found.latency >= found.launch_tax + moved / gpu.memory.hbm_bandwidth * 1e9 - 2
    )
