"""Settings for all tests."""

from collections import Counter

import pytest
from covering import EVERY_CASE, spread
from garbage import look_less_for_garbage
from hypothesis import settings

from comet.passes.schedule.fuse.gpu import trial

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile(
    "comet",
    derandomize=True,
    deadline=None,
    max_examples=100 if EVERY_CASE else 25,
)
settings.load_profile("comet")

look_less_for_garbage()

# Files of tests compile the same programs with other options.
trial.MOST_KNOWN = 1 << 11


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Leave out cases of what is marked `one_of`; cases that are asked for stay."""
    cases: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        name, _, _ = item.nodeid.partition("[")
        mark = item.get_closest_marker("one_of")
        taken = mark is None or spread(cases[name], mark.args[0])
        (kept if taken else left).append(item)
        cases[name] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = kept
