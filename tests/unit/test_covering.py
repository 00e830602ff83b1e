"""`covering`: which cases are left out, and which not."""

from itertools import combinations, product

import covering as support
import pytest
from covering import covering, fraction, spread

AXES = ("ab", (1, 2, 3, 4, 5), ("", "x,"), "MKN")


@pytest.fixture(autouse=True)
def part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "EVERY_CASE", False)


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_all_values_meet(strength: int):
    cases = covering(product(*AXES), strength)
    for axes in combinations(range(len(AXES)), strength):
        for values in product(*(AXES[axis] for axis in axes)):
            assert any([case[axis] for axis in axes] == [*values] for case in cases)


def test_few_are_taken():
    assert len(covering(product(*AXES))) <= 20
    assert covering(product("ab", "cd")) == [*product("ab", "cd")]


def test_what_is_no_case_need_not_meet():
    assert covering([("a", 1), ("b", 1), ("b", 2)]) == [("a", 1), ("b", 1), ("b", 2)]


def test_all_are_taken_on_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(support, "EVERY_CASE", True)
    assert covering(product(*AXES)) == [*product(*AXES)]


def test_values_that_are_not_paired_occur_once():
    cases = list(product("abc", range(4), range(2), range(5)))
    found = covering(cases, paired=2)
    assert [row[:2] for row in found] == list(product("abc", range(4)))
    assert {row[2] for row in found} == {*range(2)}
    assert {row[3] for row in found} == {*range(5)}


def test_a_fraction_has_all_values():
    found = fraction("abcd", range(6), of=3)
    assert len(found) == 4 * 6 // 3
    assert {first for first, _ in found} == {*"abcd"}
    assert {second for _, second in found} == {*range(6)}


def test_cases_that_are_taken_are_spread(monkeypatch: pytest.MonkeyPatch):
    for count in (2, 3):
        taken = [index for index in range(60) if spread(index, count)]
        assert taken[0] == 0
        assert len(taken) == 60 // count
        # Of cases with 2, 3 or 4 values of their last parameter, all values are taken.
        assert all(
            {index % axis for index in taken} == {*range(axis)} for axis in (2, 3, 4)
        )
    monkeypatch.setattr(support, "EVERY_CASE", True)
    assert all(spread(index, 3) for index in range(60))
