"""Settings for all tests."""

from garbage import look_less_for_garbage
from hypothesis import settings

from comet.passes.schedule.fuse.gpu import trial

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("comet", derandomize=True, deadline=None)
settings.load_profile("comet")

look_less_for_garbage()

# Files of tests compile the same programs with other options.
trial.MOST_KNOWN = 1 << 11
