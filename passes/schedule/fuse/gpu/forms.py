"""The cheapest of several forms of a kernel, each with its best tiles."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu.kernel import least_seconds
from comet.dialects.compound.dims import bytes_of
from comet.passes.schedule.fuse.gpu.groups import Group
from comet.passes.schedule.fuse.gpu.plan import plan_kernel
from comet.passes.schedule.fuse.gpu.priority import inputs_of, outputs_of
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial


class Forms:
    """The forms that a kernel may have: rows as a whole, in loops, or spilled."""

    def __init__(self, trials: Trials, strategies: Iterable[Strategy]):
        self._trials, self._strategies = trials, tuple(strategies)
        self._seconds: dict[Group, float] = {}

    def cheapest(self, ops: Group, outs: tuple[SSAValue, ...]) -> Spatial:
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

    def seconds(self, group: Group) -> float:
        """Return the time of the cheapest form, infinite if none is legal."""
        if group not in self._seconds:
            self._seconds[group] = self._priced(group)
        return self._seconds[group]

    def _priced(self, group: Group) -> float:
        try:
            return self._trials.seconds(self.cheapest(group, outputs_of(group)))
        except PassFailedException:
            return inf

    def least(self, group: Group) -> float:
        """Return a lower bound of that time."""
        moved = sum(map(bytes_of, (*inputs_of(group), *outputs_of(group))))
        return float(least_seconds(moved, self._trials.gpu))
