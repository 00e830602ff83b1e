"""The cheapest of several forms of a kernel, each with its best tiles."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from math import inf, isinf

from xdsl.utils.exceptions import PassFailedException

from comet.passes.dataflow.launches import Dependences, seconds_of_launches
from comet.passes.schedule.fuse.gpu.bound import KernelBound
from comet.passes.schedule.fuse.gpu.groups import Group, Kernel, Values
from comet.passes.schedule.fuse.gpu.op_facts import Facts
from comet.passes.schedule.fuse.gpu.plan import LoopNest, loop_nests, plan_form
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial


class Forms:
    """The cheapest form of each kernel: with whole rows, with loops, or with spills."""

    def __init__(self, trials: Trials, strategies: Iterable[Strategy]):
        self._trials = trials
        self._facts = Facts(trials.gpu)
        self._cheapest, self._seconds = cache(self._found), cache(self._priced)
        self._nests_of = cache(partial(loop_nests, tuple(strategies)))
        self._bound = cache(partial(KernelBound, facts=self._facts))

    def ops_changed(self) -> None:
        """Drop the cached facts of ops. Prices stay valid: changed ops are new ops."""
        self._bound.cache_clear()
        self._facts.clear()

    def cheapest(self, ops: Group, outs: Values) -> Spatial:
        """
        Return the cheapest kernel that computes `outs` by `ops`.

        Raises PassFailedException if no form is legal.
        """
        return self._cheapest(ops, outs)

    def _found(self, ops: Group, outs: Values) -> Spatial:
        """
        Return the cheapest form, of equal ones the first.

        The form with the lowest bound is tried first: forms with a bound above its
        price need no trial.
        """
        nests, best = self._nests_of(ops), inf
        bounds = dict.fromkeys(nests, 0.0)
        if len(nests) > 1:
            bounds = {nest: self.least_of(nest, ops, outs) for nest in nests}
        found: dict[LoopNest, tuple[float, Spatial]] = {}
        failures: dict[LoopNest, PassFailedException] = {}
        for nest in sorted(nests, key=bounds.__getitem__):
            if best < inf and bounds[nest] >= best:
                break
            kernel = plan_form(nest, ops, outs)
            try:
                seconds = self._trials.seconds(kernel)
            except PassFailedException as error:
                failures[nest] = error
                continue
            found[nest], best = (seconds, kernel), min(best, seconds)
        if not found:
            raise [failures[nest] for nest in nests][-1]
        legal = (found[nest] for nest in nests if nest in found)
        return min(legal, key=lambda form: form[0])[1]

    def seconds(self, group: Group, outs: Values) -> float:
        """Return the seconds of the cheapest form, infinite if none is legal."""
        return self._seconds(group, outs)

    def _priced(self, group: Group, outs: Values) -> float:
        try:
            return self._trials.seconds(self.cheapest(group, outs))
        except PassFailedException:
            return inf

    def launched(self, needs: Dependences[Kernel]) -> float:
        """Return the seconds of all kernels in the cheapest launches; or infinity."""
        if any(isinf(self.seconds(*kernel)) for kernel in needs.kernels):
            return inf
        trials = needs.mapped(
            lambda kernel: self._trials.fitting(self.cheapest(*kernel))
        )
        return seconds_of_launches(trials, self._trials.launches)

    def least(self, group: Group, outs: Values) -> float:
        """Return a lower bound of `seconds`."""
        return min(self.least_of(nest, group, outs) for nest in self._nests_of(group))

    def least_of(self, nest: LoopNest, group: Group, outs: Values) -> float:
        """Return a lower bound of the seconds of one form, with the loops of `nest`."""
        return self._bound(group, outs).seconds(nest)

    def roughly(self, group: Group, outs: Values) -> float:
        """Return a lower bound of `least`: the time of the bytes in device memory."""
        return self._bound(group, outs).moving_seconds()
