"""Loops that end at lengths known at run time: what `lengths` expects of them."""

from dataclasses import replace

import pytest
from paths import HARDWARE, SAMPLES
from semantics import parse_module, run_passes

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import kernel_work
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes

NUMBERS = LaunchNumbers(4, 3)
BLOCKS = {"B": 1, "H": 1, "G": 16, "S": 64, "D": 32, "E": 16}


def first_kernel(
    sample: str, lengths: float, split: str = ""
) -> tuple[KernelSummary, Device]:
    """Return the summary of the first kernel of a sample, fused as a whole."""
    hardware = HARDWARE / "h200x1.yaml"
    module = run_passes(
        parse_module((SAMPLES / f"{sample}.mlir").read_text()),
        f'attach-hardware{{path="{hardware}" lengths={lengths}}},'
        f"select-ranks{{ranks=1}},decompose{{accumulator=f32}},stream,{split}"
        "fuse{strategy=full}",
    )
    system, (function, *_) = attached_system(module), compute_functions(module)
    gpu, (node, *_) = device_of(system), grid_nodes(function)
    return summarize(node, gpu_levels(system), gpu), gpu


def test_loops_over_keys_end_at_lengths_also_in_parts():
    assert first_kernel("flash_decode", 0.5)[0].nest.seen == {"S": 0.5}
    split = first_kernel("flash_decode", 0.25, "split{dim=S parts=4},")[0]
    assert split.nest.seen == {"S_in": 0.25}


def test_rows_that_a_mask_compares_are_no_lengths():
    assert first_kernel("attention_causal", 0.5)[0].nest.seen == {}


def test_the_mean_of_the_keys_is_loaded_and_the_longest_sequence_ends_last():
    """Eight programs, each on a multiprocessor of its own: the longest has 4 tiles."""
    whole, gpu = first_kernel("flash_decode", 1.0)
    half, _ = first_kernel("flash_decode", 0.5)
    assert whole.uneven(BLOCKS) == 0
    keys, values, positions = 64 * 32 * 2, 64 * 16 * 2, 64 * 4
    # Queries are loaded once.
    assert half.uneven(BLOCKS) == 2 * (keys + values + positions)
    assert whole.iterations(BLOCKS) == half.iterations(BLOCKS)
    first, second = (kernel_work(n, BLOCKS, NUMBERS, gpu) for n in (whole, half))
    saved = first.moved.device - second.moved.device
    assert saved == (4 * (8 * (keys + values) + positions)) / 2
    before, after = (kernel_time(work, gpu) for work in (first, second))
    assert float(after.l2) == pytest.approx(float(before.l2))
    alone = 132 * half.uneven(BLOCKS) / gpu.memory.l2_bandwidth
    expected = float(before.device) - saved / gpu.memory.hbm_bandwidth + alone
    assert float(after.device) == pytest.approx(expected)


def test_with_more_programs_on_a_multiprocessor_lengths_even_out():
    half, _ = first_kernel("flash_decode", 0.5)
    extents = {**half.nest.extents, "B": 4 * 132}
    more = replace(half, nest=replace(half.nest, extents=extents))
    assert more.uneven(BLOCKS) == half.uneven(BLOCKS) / 8
