"""Settings for all tests."""

import gc

from hypothesis import settings

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("comet", derandomize=True, deadline=None)
settings.load_profile("comet")


def pytest_collection_finish() -> None:
    """Look for garbage in what tests make, and seldom: IR has many cycles."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
