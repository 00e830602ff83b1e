"""Settings for all tests."""

from garbage import look_less_for_garbage
from hypothesis import settings

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("comet", derandomize=True, deadline=None)
settings.load_profile("comet")

look_less_for_garbage()
