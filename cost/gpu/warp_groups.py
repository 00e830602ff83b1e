"""
The time of groups of warps that compute in turns, while producer warps load.

Each group has a part of the rows of a tile, and alternates between products and vector
operations. While one group computes products, another group may use the vector lanes.
Times are seconds; counts may be arrays, one element per choice of block sizes.
"""

from __future__ import annotations

import numpy as np

from comet.cost.reals import Real

TINY = float(np.finfo(float).tiny)
"""The smallest time, in place of 0 as a divisor."""


def in_turns(products: Real, others: Real, groups: Real) -> Real:
    """
    Return the time of the products and the other operations of some groups.

    The groups are the customers of a closed network of two queues, the matrix units and
    the vector lanes. By mean-value analysis, the times follow from those of one group
    alone (Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing
    networks", Journal of the ACM 1980).
    """
    first, second = products / groups, others / groups
    time = first + second
    alone = np.maximum(time, TINY)
    before = first / alone
    for group in range(2, int(np.max(groups)) + 1):
        # A group finds those that were there when there was one less.
        there = first * (1 + before), second * (1 + (group - 1) - before)
        together = np.maximum(there[0] + there[1], TINY)
        before = group * there[0] / together
        time = np.where(np.greater_equal(groups, group), there[0] + there[1], time)
    return time


def refilling(loading: Real, computing: Real, stages: Real) -> Real:
    """
    Return the least time of a loop whose buffers are loaded again as soon as possible.

    `loading` is the latency of all its loads, one after another. Each buffer is loaded,
    then computed on, and there are `stages` buffers.
    """
    return (loading + computing) / stages
