"""Which loops are around the copy of a tile, for numbers and for arrays."""

import numpy as np

from comet.cost.gpu.hoisting import loops_around


def test_a_copy_is_in_all_loops_up_to_the_last_that_changes_it():
    loops = [("M", 2), ("N", 3), ("K", 4)]
    assert loops_around("MK", loops) == [True, True, True]
    assert loops_around("N", loops) == [True, True, False]
    assert loops_around("", loops) == [False, False, False]


def test_a_loop_of_one_trip_changes_nothing():
    assert loops_around("MK", [("M", 2), ("N", 3), ("K", 1)]) == [True, False, False]


def test_a_late_copy_stays_in_all_loops():
    loops = [("M", 2), ("N", 3)]
    assert loops_around("K", loops, late=True) == [True, True]


def test_arrays_answer_for_many_loops_at_once():
    trips = np.array([1.0, 2.0])
    outer, inner = loops_around("K", [("N", 3.0), ("K", trips)])
    assert np.array_equal(outer, [False, True])
    assert np.array_equal(inner, [False, True])
