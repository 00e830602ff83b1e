"""A cache keeps what was used last."""

from comet.recent import Recent


def test_the_least_recently_used_are_forgotten():
    recent = Recent[str, int](2)
    assert recent.get("a") is None
    assert recent.keep("a", 1) == 1
    recent.keep("b", 2)
    assert recent.get("a") == 1
    recent.keep("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_that_is_kept_again_is_used_last_and_takes_no_more_room():
    recent = Recent[str, int](2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        recent.keep(key, value)
    assert [recent.get(key) for key in "abc"] == [3, None, 4]
