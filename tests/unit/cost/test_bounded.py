"""Loops that a mask ends: how many of their iterations run, and what that costs."""

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from covering import one_of
from gpu_graphs import H200
from hypothesis import given
from hypothesis import strategies as st
from masked_programs import window
from semantics import parse_module, run_passes

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.bounded import Bound, BoundedLoop, Trips, busiest
from comet.cost.gpu.launch_order import (
    l2_swizzle,
    successive_programs,
    tiles_in_order,
)
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.triton.map_grid import axes_of

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
    found = BoundedLoop(rows, extent, offset).trips(row_block, block)
    assert (found.mean, found.longest) == (sum(counts) / len(counts), max(counts))


@given(st.integers(1, 200), st.integers(1, 200), st.integers(-50, 50), BLOCKS, BLOCKS)
def test_iterations_begin_with_a_visible_position(
    rows: int, extent: int, offset: int, row_block: int, block: int
):
    counts = [
        sum(
            any(
                column >= row + offset
                for row in range(first, min(first + row_block, rows))
                for column in range(start, min(start + block, extent))
            )
            for start in range(0, extent, block)
        )
        for first in range(0, rows, row_block)
    ]
    found = BoundedLoop(rows, extent, offset, since=True).trips(row_block, block)
    assert (found.mean, found.longest) == (sum(counts) / len(counts), max(counts))


@given(st.integers(1, 99), st.integers(0, 50), st.integers(0, 99), BLOCKS, BLOCKS)
def test_iterations_of_a_window_are_those_between_its_ends(
    rows: int, more: int, width: int, row_block: int, block: int
):
    """From what the first row of a program sees first to what its last row sees."""
    extent = rows + more
    counts = [
        sum(
            max(first - width, 0) < start + block and start <= min(last, extent - 1)
            for start in range(0, extent, block)
        )
        for first in range(0, rows, row_block)
        for last in (min(first + row_block, rows) - 1,)
    ]
    found = BoundedLoop(rows, extent, 0, first=-width).trips(row_block, block)
    assert (found.mean, found.longest) == (sum(counts) / len(counts), max(counts))


@one_of(2)
@pytest.mark.parametrize("since", [False, True])
@given(st.integers(1, 60), st.integers(1, 60), st.integers(-9, 9), BLOCKS, BLOCKS)
def test_a_mask_is_needed_where_some_positions_are_hidden(
    since: bool, rows: int, extent: int, offset: int, row_block: int, block: int
):
    """A short last tile counts as masked, but not where the mask starts the loop."""

    def needs_mask(first: int, start: int) -> bool:
        seen = [
            (column >= row + offset) if since else (column <= row + offset)
            for row in range(first, min(first + row_block, rows))
            for column in range(start, min(start + block, extent))
        ]
        short = not since and start + block > extent
        return any(seen) and (short or not all(seen))

    counts = [
        sum(needs_mask(first, start) for start in range(0, extent, block))
        for first in range(0, rows, row_block)
    ]
    found = BoundedLoop(rows, extent, offset, since).trips(row_block, block)
    assert found.masked == pytest.approx(sum(counts) / len(counts))


@given(st.integers(1, 40), st.integers(1, 20), BLOCKS)
def test_the_first_keys_are_busy_as_long_as_the_last_queries(
    rows: int, processors: int, block: int
):
    """Of positions since a row the first rows see most, of those before it the last."""
    since, until = (
        BoundedLoop(rows, rows, 0, since=each).trips(1, 1, block, processors)
        for each in (True, False)
    )
    assert since == until


@given(
    st.integers(1, 40),
    st.integers(-3, 8),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 3, 8]),
    st.integers(1, 20),
)
def test_processors_are_busy_as_long_as_is_said_at_most(
    rows: int, offset: int, row_block: int, successive: int, processors: int
):
    """Programs start when a processor is free, those with the last rows first."""
    loop = BoundedLoop(rows, rows, offset)
    trips = loop.trips(row_block, 1, successive, processors)
    lengths = [
        max(0, min(min(first + row_block, rows) + offset, rows))
        for first in reversed(range(0, rows, row_block))
        for _ in range(successive)
    ]
    ends = [0] * processors
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length)
    share = len(lengths) / processors
    turns = math.ceil(share)
    bound = max(trips.longest, share * trips.mean + trips.tail)
    assert max(ends) <= bound + 1e-9
    served = float(trips.served_longest_first(turns, share))
    assert trips.mean * share <= served * turns + 1e-9
    assert served <= trips.served(turns)


@pytest.mark.parametrize("axes", [1, 3])
@pytest.mark.parametrize(
    "trips",
    [(5, 1), (1, 5), (4, 6), (3, 1, 4, 1), (2, 3, 4), (2, 3, 2, 4), (2, 2, 3, 2, 2)],
)
def test_neighbours_start_one_after_another(trips: tuple[int, ...], axes: int):
    """Those that `map-grid` launches next to each other have the same tile."""
    split = [index for index, count in enumerate(trips) if count > 1]
    placed = [0] * len(trips)
    if axes > 1:
        found = axes_of([trips[index] for index in split], 1)
        for index, axis in zip(split, found, strict=True):
            placed[index] = axis
    order = sorted(
        itertools.product(*map(range, trips)),
        key=lambda tiles: launched(tiles, trips, placed),
    )
    for index in split:
        runs = [len(list(run)) for _, run in itertools.groupby(t[index] for t in order)]
        assert min(runs) == successive_programs(trips, index, 1)


def launched(tiles: Sequence[int], trips: Sequence[int], axes: Sequence[int]) -> int:
    """Return the number of a program: axis 0 is fastest, of its loops the last."""
    number, size = 0, 1
    for axis in range(3):
        for index in reversed(range(len(trips))):
            if axes[index] == axis:
                number, size = number + size * tiles[index], size * trips[index]
    return number


def test_a_swizzle_lets_some_programs_start_together():
    assert l2_swizzle((32, 16), 132) == 8
    assert l2_swizzle((4, 64), 132) == 4
    assert l2_swizzle((4, 16), 132) == 1
    assert l2_swizzle((2, 32, 16), 132) == 1
    assert successive_programs((32, 16), 1, 8) == 8
    assert successive_programs((32, 16), 0, 8) == 1


@pytest.mark.parametrize("swizzle", [1, 2, 4, 8])
@pytest.mark.parametrize("trips", [(8, 3), (2, 1, 12, 5, 1), (4, 12, 2, 3)])
def test_tiles_of_a_group_advance_together(trips: tuple[int, ...], swizzle: int):
    """In the order of `tl.swizzle2d`, whose columns are the last loop of several."""
    split = [index for index, count in enumerate(trips) if count > 1]
    order = np.array([tiles_in_order(trips, index, swizzle) for index in split]).T
    assert len(np.unique(order, axis=0)) == math.prod(trips)
    for column, index in zip(order.T, split, strict=True):
        runs = [len(list(run)) for _, run in itertools.groupby(column)]
        assert min(runs) == successive_programs(trips, index, swizzle)
    *rows, columns = (trips[index] for index in split)
    places = itertools.product(range(math.prod(rows)), range(columns))
    for place, found in zip(places, order.tolist(), strict=True):
        row, column = swizzle2d(*place, math.prod(rows), columns, swizzle)
        assert found == [*np.unravel_index(row, rows), column]


def swizzle2d(i: int, j: int, rows: int, columns: int, group: int) -> tuple[int, int]:
    """Return what `tl.swizzle2d` does, see triton/language/standard.py."""
    number = i * columns + j
    first = number // (group * columns) * group
    size = min(rows - first, group)
    place = number % (group * columns)
    return first + place % size, place // size


def test_the_busiest_persistent_program_has_less_to_do_in_groups():
    """Of 4 x 32 heads of 4096 queries, in tiles of 128 x 128, on 132 processors."""
    lengths = BoundedLoop(4096, 4096, 0).by_tile(128, 128)
    sums = {
        swizzle: busiest(lengths[31 - tiles_in_order((4, 32, 32, 1), 2, swizzle)], 132)
        for swizzle in (1, 8)
    }
    assert sums == {1: 576 / 32, 8: 528 / 32}
    assert 128 * lengths.sum() / 132 == 512


def test_an_axis_that_would_be_too_long_is_shared():
    assert axes_of([4, 32, 16], 1) == [2, 1, 0]
    assert axes_of([2, 4, 32, 16], 1) == [2, 2, 1, 0]
    assert axes_of([4, 32, 16], 8) == [1, 1, 0]
    assert axes_of([300, 300, 2], 8) == [0, 0, 0]
    assert axes_of([65536, 2], 1) == axes_of([300, 300, 2, 2], 1)[2:] == [0, 0]


def test_blocks_may_be_arrays():
    blocks = np.array([64.0, 128.0]), np.array([64.0, 32.0])
    found = BoundedLoop(256, 256, 0).trips(*blocks)
    assert list(np.ravel(found.mean)) == [2.5, 6.0]
    assert list(np.ravel(found.longest)) == [4.0, 8.0]


def test_one_program_at_a_time_is_as_long_as_the_longest():
    trips = Trips(2.5, 4.0, 3.0, 1.0)
    assert trips.served(1) == 4.0
    assert trips.served(15) == 2.6
    assert trips.served_longest_first(2, 1.5) == 3.25
    assert trips.served_longest_first(2, 2) == 3.25
    assert trips.served_longest_first(1, 0.5) == 4.0


def latency(rows: int, keys: int, causal: str) -> tuple[float, dict[str, Bound]]:
    """Return the nanoseconds of attention in one kernel, and its bounds."""
    return priced(ATTENTION.format(M=rows, N=keys, causal=causal))


def priced(text: str, first: str = "") -> tuple[float, dict[str, Bound]]:
    """Return the same of attention as text, after some passes."""
    passes = (
        f"{H200},decompose{{accumulator=f32}},{first}stream,fuse{{strategy=full}},tile"
    )
    module = run_passes(parse_module(text), passes)
    system = attached_system(module)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    found = estimate_of(node)
    assert found is not None
    summary = summarize(node, gpu_levels(system), device_of(system))
    return found.latency, dict(summary.nest.bounds)


def test_causal_attention_is_priced_at_little_more_than_half():
    whole, bounds = latency(4096, 4096, "")
    assert bounds == {}
    half, bounds = latency(4096, 4096, "causal")
    assert bounds == {"N": Bound("M", 0)}
    assert 0.5 < half / whole < 0.65


def test_the_last_queries_see_keys_before_the_first():
    _, bounds = latency(512, 1024, "causal")
    assert bounds == {"N": Bound("M", 512)}


def test_a_window_bounds_both_ends_of_a_loop():
    _, bounds = priced(window(256, 20), "use-ge,")
    assert bounds == {"N": Bound("M", 0, first=-19)}
    # Rows that see nothing have all iterations, see `bound-loops`.
    _, bounds = priced(window(256, 0), "use-ge,")
    assert bounds == {}


def test_the_bytes_of_all_programs_are_those_that_run():
    """One turn of programs takes as long as the longest, but moves what all move."""
    text = ATTENTION.format(M=512, N=512, causal="causal").replace("4x8x", "1x1x")
    passes = f"{H200},decompose{{accumulator=f32}},stream,fuse{{strategy=full}}"
    module = run_passes(parse_module(text), passes)
    system = attached_system(module)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    summary = summarize(node, gpu_levels(system), device_of(system))
    blocks = {dim: 64.0 for dim in summary.nest.extents} | {"B": 1.0, "H": 1.0}
    assert summary.iterated("N", blocks) == 8
    whole = replace(summary, nest=replace(summary.nest, bounds={}))
    running, every = (list(each.moved_by_loads(blocks)) for each in (summary, whole))
    fractions = {float(some / full) for some, full in zip(running, every, strict=True)}
    assert fractions == {1.0, 4.5 / 8}
