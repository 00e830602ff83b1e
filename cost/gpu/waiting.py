"""Where a program waits for messages: in the loop over ranks, or before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comet.cost.reals import Real, Truth, any_of


def waits_in_loop(inside: Sequence[Real]) -> Truth:
    """
    Return whether a program waits for one source at a time, in the loop over sources.

    Else it waits for all sources before that loop. `inside` are the trip counts of the
    loops in that loop. If one has several trips, each source has several tiles, which
    are loaded while those of later sources arrive. Otherwise the wait is before the
    loop: a loop that waits cannot load ahead.
    """
    return any_of(np.greater(trips, 1) for trips in inside)
