"""A sample of the frozen outputs: `make oracle` compares all of them."""

import pytest
from oracle import Frozen, compute, difference, explained, frozen, keys, sample_keys

SEED = 12
COUNTS = {"triton": 6, "comet": 1, "price": 8}


def test_every_cell_is_frozen():
    assert set(keys()) == set(frozen())


@pytest.mark.parametrize("key", sample_keys(SEED, COUNTS))
def test_output_is_as_frozen(key: str):
    before, now = frozen()[key], compute(key)
    assert difference(before, now) == "same", explained(key, before, now)


def test_differences_are_named():
    before = Frozen("t", "c", 2.0)
    assert difference(before, Frozen("t", "c", 2.0)) == "same"
    assert difference(before, Frozen("u", "c", 2.0)) == "comments"
    assert difference(before, Frozen("u", "d", 2.0)) == "text"
    assert explained("k", before, Frozen("u", "d", 3.0)) == "k: price 2 -> 3"
    assert explained("k", before, Frozen()) == "k: was compiled, is refused"
    assert explained("k", None, before) == "k: new"
