"""benchmarks/ragged.py: programs of known lengths."""

import pytest
from ragged import (
    OCCUPANCY,
    Case,
    Multiprocessors,
    flat_form,
    makespan,
    multiprocessors,
    seen_form,
    split_form,
)

GPU = Multiprocessors(132, 2.0)


def test_the_hardware_file_has_the_multiprocessors():
    assert multiprocessors("h200x1") == Multiprocessors(132, 9370 / 4800)
    assert multiprocessors("mi300x8").count == 304


def test_equal_programs_keep_all_multiprocessors_busy():
    assert makespan([64] * 132 * OCCUPANCY, GPU) == pytest.approx(64 * 264)


def test_a_program_alone_has_the_most_bandwidth_of_a_multiprocessor():
    assert makespan([640], GPU) == pytest.approx(640 * 132 / 2)
    assert makespan([640, 0, 0], GPU) == pytest.approx(640 * 132 / 2)


def test_programs_of_one_multiprocessor_share_its_bandwidth():
    """All end at 128 but one, which has 128 left and twice the bandwidth."""
    work = [64] * 132 * OCCUPANCY
    work[-1] = 192
    assert makespan(work, GPU) == pytest.approx((128 + 64) * 132)


def test_a_flat_list_has_equal_runs():
    """264 programs of two tiles: two programs share each sequence of three tiles."""
    time, partials = flat_form(Case(176, 1, 192), [192] * 176, GPU)
    assert (time, partials) == (192 * 176, 2 * 176)


def test_parts_beyond_the_length_cost_only_their_partial_results():
    """Parts of 128 keys: two, and one, each alone on its multiprocessor."""
    time, partials = split_form(Case(2, 1, 256), [128, 256], 2, GPU)
    assert (time, partials) == (pytest.approx(128 * 132 / 2), 4)


def test_seen_parts_alone_are_stored():
    """Three of four: the same time, and no partial result of the fourth."""
    case, lengths = Case(2, 1, 256), [128, 256]
    time, _ = split_form(case, lengths, 2, GPU)
    assert seen_form(case, lengths, 2, GPU) == (time, 3)
