"""Loops that a mask ends: how many of their iterations run, and what that costs."""

from dataclasses import replace

import numpy as np
from gpu_graphs import H200
from hypothesis import given
from hypothesis import strategies as st
from semantics import parse_module, run_passes

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.bounded import Bound, Trips, bounded_trips
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes

BLOCKS = st.sampled_from([1, 2, 4, 8, 16, 32, 64])

ATTENTION = """
func.func @f(%q: tensor<4x8x{M}x64xf16>, %k: tensor<4x8x{N}x64xf16>,
    %v: tensor<4x8x{N}x64xf16>) -> tensor<4x8x{M}x64xf16> {{
  %o = compound.attention %q, %k, %v {causal} : (tensor<4x8x{M}x64xf16>,
    tensor<4x8x{N}x64xf16>, tensor<4x8x{N}x64xf16>) -> tensor<4x8x{M}x64xf16>
  func.return %o : tensor<4x8x{M}x64xf16>
}}"""


@given(st.integers(1, 200), st.integers(1, 200), st.integers(-50, 50), BLOCKS, BLOCKS)
def test_iterations_are_those_with_a_visible_position(
    rows: int, extent: int, offset: int, row_block: int, block: int
):
    counts = [
        sum(
            any(
                column <= row + offset
                for row in range(first, min(first + row_block, rows))
                for column in range(start, min(start + block, extent))
            )
            for start in range(0, extent, block)
        )
        for first in range(0, rows, row_block)
    ]
    found = bounded_trips(rows, extent, offset, row_block, block)
    assert found == Trips(sum(counts) / len(counts), max(counts))


def test_blocks_may_be_arrays():
    found = bounded_trips(256, 256, 0, np.array([64.0, 128.0]), np.array([64.0, 32.0]))
    assert list(np.asarray(found.mean)) == [2.5, 6.0]
    assert list(np.asarray(found.most)) == [4.0, 8.0]


def test_one_program_at_a_time_is_as_long_as_the_longest():
    trips = Trips(2.5, 4.0)
    assert trips.served(1) == 4.0
    assert trips.served(15) == 2.6


def latency(rows: int, keys: int, causal: str) -> tuple[float, dict[str, Bound]]:
    """Return the nanoseconds of attention in one kernel, and its bounds."""
    text = ATTENTION.format(M=rows, N=keys, causal=causal)
    passes = f"{H200},decompose{{accumulator=f32}},stream,fuse{{strategy=full}},tile"
    module = run_passes(parse_module(text), passes)
    system = attached_system(module)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    found = estimate_of(node)
    assert found is not None
    summary = summarize(node, gpu_levels(system), device_of(system))
    return found.latency, dict(summary.bounds)


def test_causal_attention_is_priced_at_little_more_than_half():
    whole, bounds = latency(4096, 4096, "")
    assert bounds == {}
    half, bounds = latency(4096, 4096, "causal")
    assert bounds == {"N": Bound("M", 0)}
    assert 0.5 < half / whole < 0.65


def test_the_last_queries_see_keys_before_the_first():
    _, bounds = latency(512, 1024, "causal")
    assert bounds == {"N": Bound("M", 512)}


def test_the_bytes_of_all_programs_are_those_that_run():
    """One turn of programs takes as long as the longest, but moves what all move."""
    text = ATTENTION.format(M=512, N=512, causal="causal").replace("4x8x", "1x1x")
    passes = f"{H200},decompose{{accumulator=f32}},stream,fuse{{strategy=full}}"
    module = run_passes(parse_module(text), passes)
    system = attached_system(module)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    summary = summarize(node, gpu_levels(system), device_of(system))
    blocks = {dim: 64.0 for dim in summary.extents} | {"B": 1.0, "H": 1.0}
    assert summary.iterated("N", blocks) == 8
    whole = replace(summary, bounds={})
    running, every = (list(each.moved_by_loads(blocks)) for each in (summary, whole))
    fractions = {float(some / full) for some, full in zip(running, every, strict=True)}
    assert fractions == {1.0, 4.5 / 8}
