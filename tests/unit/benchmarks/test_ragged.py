"""benchmarks/ragged.py: programs of known lengths."""

from ragged import MULTIPROCESSORS, RESIDENT, Case, flat_form, makespan, split_form


def test_equal_programs_keep_all_multiprocessors_busy():
    assert makespan([64] * MULTIPROCESSORS * RESIDENT) == 64 * 264


def test_a_program_alone_has_the_bandwidth_of_one_multiprocessor():
    assert makespan([640]) == 640 * MULTIPROCESSORS
    assert makespan([640, 0, 0]) == 640 * MULTIPROCESSORS


def test_programs_of_one_multiprocessor_share_its_bandwidth():
    """All others end at 128; two of 64 and 192 end at 128 and 256."""
    work = [64] * MULTIPROCESSORS * RESIDENT
    work[-1] = 192
    assert makespan(work) == 256 * MULTIPROCESSORS


def test_a_flat_list_has_equal_runs():
    """264 programs of two tiles: two programs share each sequence of three tiles."""
    time, partials = flat_form(Case(176, 1, 192), [192] * 176)
    assert (time, partials) == (192 * 176, 2 * 176)


def test_parts_beyond_the_length_cost_only_their_partial_results():
    case = Case(2, 1, 256)
    assert split_form(case, [128, 256], 2) == (128 * MULTIPROCESSORS, 4)
