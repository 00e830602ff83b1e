"""Formulas are recorded once, and then give what their code gives."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from comet.cost.reals import ascending, choose, larger, longest, total
from comet.cost.replay import Array, Figure, Formula


def columns(count: int, seed: int = 0) -> dict[str, Array]:
    """Return two arrays of some numbers."""
    random = np.random.default_rng(seed)
    return {name: random.integers(1, 9, count).astype(float) for name in "ab"}


class Counted:
    """A formula of two arrays, which counts how often its code runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, arrays: Mapping[str, Array]) -> Sequence[Figure]:
        """Use all kinds of operations, one of them twice, one for nothing."""
        self.runs += 1
        a, b = arrays["a"], arrays["b"]
        low, high = ascending((a, b))
        unused = low - 1
        assert unused is not low
        ratio = np.ceil(a / b)
        chosen = choose(np.greater(a, b), ratio, 2.0)
        sums = total((a // b, np.ceil(a / b), larger(b, 3.0), -high))
        return sums * chosen, (a > b) | (b == 4), 7.0, longest((low, 5.0)), a


def test_a_formula_is_recorded_once_and_repeated_for_others():
    code, expected = Counted(), Counted()
    formula = Formula(code)
    for count, seed in ((4, 0), (1, 1), (1000, 2), (0, 3)):
        arrays = columns(count, seed)
        found = formula(arrays)
        wanted = [np.broadcast_to(each, count) for each in expected(arrays)]
        assert all(map(np.array_equal, found, wanted))
        assert [each.dtype for each in found] == [each.dtype for each in wanted]
    assert (formula.is_recorded, code.runs) == (True, 1)


def test_arrays_are_known_by_their_names_not_by_their_order():
    formula = Formula[str](lambda arrays: (arrays["a"] - arrays["b"],))
    arrays = columns(5)
    (before,) = formula(arrays)
    (after,) = formula(dict(reversed(arrays.items())))
    assert np.array_equal(before, after)


def by_truth(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Decide by the numbers of a mapping."""
    return (arrays["a"] if bool((arrays["a"] == 1.0)[0]) else arrays["b"],)


def by_sum(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Combine mappings."""
    return (arrays["a"] / np.sum(arrays["a"]),)


def by_element(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Take the number of one mapping."""
    return (arrays["a"] * arrays["a"][-1],)


def by_memory(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Use an array that is not of the arguments."""
    return (arrays["a"] * np.asarray(arrays["b"]),)


def in_place(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Change an array."""
    result = arrays["a"] * 1.0
    result += arrays["b"]
    return (result,)


def by_item(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Take a number from an array."""
    return (arrays["a"] * arrays["a"].item(1),)


def by_list(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Take the numbers of an array."""
    return (arrays["a"] * max(arrays["a"].tolist()),)


def by_places(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Count the mappings for which a truth holds."""
    return (arrays["a"] * len(np.where(arrays["a"] > 4)[0]),)


def two_results(arrays: Mapping[str, Array]) -> Sequence[Figure]:
    """Do an operation that gives two arrays."""
    return divmod(arrays["a"], arrays["b"])


SINGLE = [
    by_truth,
    by_sum,
    by_element,
    by_item,
    by_list,
    by_places,
    by_memory,
    in_place,
    two_results,
]


@pytest.mark.parametrize("code", SINGLE)
def test_what_depends_on_single_mappings_is_evaluated_each_time(
    code: Callable[[Mapping[str, Array]], Sequence[Figure]],
):
    formula = Formula(code)
    for seed in range(3):
        arrays = columns(6, seed)
        assert np.array_equal(formula(arrays)[0], code(arrays)[0])
    assert not formula.is_recorded


def test_unknown_truths_are_those_that_leave_nothing_out():
    seen: list[tuple[bool, bool]] = []

    def code(arrays: Mapping[str, Array]) -> Sequence[Figure]:
        truth = arrays["a"] > 100
        seen.append((bool(np.any(truth)), bool(np.all(~truth))))
        return (truth,)

    Formula(code)(columns(3))
    assert seen == [(True, False)]


def test_zeros_of_both_signs_are_different_numbers():
    formula = Formula[str](
        lambda arrays: (
            np.copysign(arrays["a"], 0.0),
            np.copysign(arrays["a"], -0.0),
        )
    )
    positive, negative = formula(columns(3))
    assert np.all(positive > 0)
    assert np.all(negative < 0)
