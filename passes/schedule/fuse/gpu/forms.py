"""The cheapest of several forms of a kernel, each with its best tiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isinf, prod

from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.products import seconds_of_products
from comet.cost.gpu.kernel import least_seconds
from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import bytes_of, joined_extents
from comet.passes.dataflow.launches import Needs
from comet.passes.schedule.fuse.gpu.groups import Group, Kernel, Values, inputs_of
from comet.passes.schedule.fuse.gpu.launching import seconds_of_launches
from comet.passes.schedule.fuse.gpu.plan import grid_dims, plan_forms
from comet.passes.schedule.fuse.gpu.scatters import computed, scatters_of
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial


class Forms:
    """The forms that a kernel may have: rows as a whole, in loops, or spilled."""

    def __init__(self, trials: Trials, strategies: Iterable[Strategy]):
        self._trials, self._strategies = trials, tuple(strategies)
        self._cheapest: dict[Kernel, Spatial] = {}
        self._seconds: dict[Kernel, float] = {}

    def cheapest(self, ops: Group, outs: Values) -> Spatial:
        """
        Return the cheapest kernel that computes `outs` by `ops`.

        Raises PassFailedException if no form is legal.
        """
        if (ops, outs) not in self._cheapest:
            self._cheapest[ops, outs] = self._found(ops, outs)
        return self._cheapest[ops, outs]

    def _found(self, ops: Group, outs: Values) -> Spatial:
        found: dict[Spatial, float] = {}
        failure = PassFailedException("fuse: a kernel has no form")
        for kernel in plan_forms(self._strategies, ops, outs):
            try:
                found.setdefault(kernel, self._trials.seconds(kernel))
            except PassFailedException as error:
                failure = error
        if not found:
            raise failure
        return min(found, key=found.__getitem__)

    def seconds(self, group: Group, outs: Values) -> float:
        """Return the seconds of the cheapest form, infinite if none is legal."""
        key = group, outs
        if key not in self._seconds:
            self._seconds[key] = self._priced(group, outs)
        return self._seconds[key]

    def _priced(self, group: Group, outs: Values) -> float:
        try:
            return self._trials.seconds(self.cheapest(group, outs))
        except PassFailedException:
            return inf

    def launched(self, needs: Needs[Kernel]) -> float:
        """Return the seconds of kernels with the cheapest launches, or infinity."""
        if any(isinf(self.seconds(*kernel)) for kernel in needs.kernels):
            return inf
        trials = {
            kernel: self._trials.fitting(self.cheapest(*kernel))
            for kernel in needs.kernels
        }
        read = {
            trial: frozenset(trials[each] for each in needs.read[kernel])
            for kernel, trial in trials.items()
        }
        return seconds_of_launches(Needs(tuple(read), read), self._trials.launches)

    def least(self, group: Group, outs: Values) -> float:
        """
        Return a lower bound of `seconds`.

        Only bytes count if a mask compares positions: it may end the loops of products.
        """
        gpu, read = self._trials.gpu, inputs_of(group)
        moved = sum(map(bytes_of, (*read, *outs)))
        if _reads_positions(group):
            return float(least_seconds(moved, gpu))
        computing = seconds_of_products(group, gpu)
        programs = prod(_grid_extents(group, outs))
        rounds = 1 if read else 0
        return float(least_seconds(moved, gpu, computing, programs, rounds))


def _reads_positions(group: Group) -> bool:
    values = (value for op in group for value in op.operands)
    return any(isinstance(value.owner, IndexOp) for value in values)


def _grid_extents(group: Group, outs: Values) -> Iterator[int]:
    """Yield the extents of the grid: the most programs that there can be."""
    made, scatters = computed(outs), scatters_of(group)
    extents, ops = joined_extents(made), [op for op in group if op not in scatters]
    yield from (extents[dim] for dim in grid_dims(ops, made))
