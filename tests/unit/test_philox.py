"""Random numbers by Philox, of ints and of arrays."""

import numpy as np

from comet.philox import philox, random_bits, random_number

ALL = 0xFFFFFFFF


def test_bits_are_those_of_the_generator():
    """As in kat_vectors of Random123, philox 4x32 10 of counter 0 and key 0."""
    assert random_bits(0, 0) == 0x6627E8D5


def test_arrays_have_the_numbers_of_ints():
    seeds = np.array([[0.0], [-1.0], [2.0**52 + 1], [123456789012.0]])
    positions = np.array([0.0, 1.0, -1.0, 2.0**31 - 1, -(2.0**31), 2.0**32 + 1])
    found = philox(seeds, positions)
    assert found.shape == (4, 6)
    for row, seed in zip(found, seeds.ravel(), strict=True):
        assert row.tolist() == [random_number(seed, each) for each in positions]
    assert philox(np.asarray(3.0), np.asarray(4.0)) == random_number(3, 4)


def test_positions_count_in_32_bits():
    assert random_number(5, 2**32 + 7) == random_number(5, 7)
    assert random_number(5, -1) == random_number(5, ALL)
    assert random_number(2**32 + 5, 7) != random_number(5, 7)


def test_numbers_are_uniform():
    """By the moments of uniform numbers, within five standard deviations."""
    count = 1 << 20
    numbers = philox(np.asarray(11.0), np.arange(count, dtype=np.float64))
    assert 0 <= numbers.min() < 1e-5
    assert 1 - 1e-5 < numbers.max() < 1
    assert abs(numbers.mean() - 1 / 2) < 5 * (1 / 12 / count) ** 0.5
    assert abs(numbers.var() - 1 / 12) < 5 * (1 / 180 / count) ** 0.5
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 5 / count**0.5
    others = philox(np.asarray(12.0), np.arange(count, dtype=np.float64))
    assert abs(np.corrcoef(numbers, others)[0, 1]) < 5 / count**0.5
