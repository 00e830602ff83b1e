"""The cheapest of several forms of a kernel, each with its best tiles."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu.kernel import least_seconds
from comet.dialects.compound.dims import bytes_of
from comet.passes.schedule.fuse.gpu.groups import Group
from comet.passes.schedule.fuse.gpu.plan import plan_kernel
from comet.passes.schedule.fuse.gpu.priority import Values, inputs_of
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial


class Forms:
    """The forms that a kernel may have: rows as a whole, in loops, or spilled."""

    def __init__(self, trials: Trials, strategies: Iterable[Strategy]):
        self._trials, self._strategies = trials, tuple(strategies)
        self._seconds: dict[tuple[Group, Values], float] = {}

    def cheapest(self, ops: Group, outs: Values) -> Spatial:
        """
        Return the kernel that computes `outs` by `ops` in the cheapest form.

        Raises PassFailedException if none is legal.
        """
        found: dict[Spatial, float] = {}
        failure = PassFailedException("fuse: a kernel has no form")
        for strategy in self._strategies:
            kernel = plan_kernel(strategy, ops, outs)
            try:
                found.setdefault(kernel, self._trials.seconds(kernel))
            except PassFailedException as error:
                failure = error
        if not found:
            raise failure
        return min(found, key=found.__getitem__)

    def seconds(self, group: Group, outs: Values) -> float:
        """Return the time of the cheapest form, infinite if none is legal."""
        key = group, outs
        if key not in self._seconds:
            self._seconds[key] = self._priced(group, outs)
        return self._seconds[key]

    def _priced(self, group: Group, outs: Values) -> float:
        try:
            return self._trials.seconds(self.cheapest(group, outs))
        except PassFailedException:
            return inf

    def least(self, group: Group, outs: Values) -> float:
        """Return a lower bound of that time."""
        moved = sum(map(bytes_of, (*inputs_of(group), *outs)))
        return float(least_seconds(moved, self._trials.gpu))
