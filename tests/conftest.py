"""Settings for all tests."""

import gc

from hypothesis import settings

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("comet", derandomize=True, deadline=None)
settings.load_profile("comet")

# IR has many cycles; looking for garbage less often saves a twentieth of the time.
gc.set_threshold(100_000, 20, 100)
