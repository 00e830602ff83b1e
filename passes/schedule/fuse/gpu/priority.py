"""
Priority fusion: the kernels of a graph, merged two at a time in the order of gain.

Every op begins as a kernel, but elementwise ops go with an op next to them. Then the
two kernels that save most time as one are merged, until no merge saves any. A merge is
legal if no value goes from one kernel to the other through a third, and if no dimension
has two extents. Its gain is priced with the best tiles, but only once the upper bound
of the gain, which needs no tiles, is the largest of all.

Each kernel is then a launch. At last merges are undone without which all kernels take
less time, as those that do not need each other share launches.

Ops that are cheap to compute again are in every kernel that reads them, and never
kernels of their own: what they make is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite
from typing import Protocol, TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import (
    ContractOp,
    FillOp,
    FoldOp,
    View,
)
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.op_groups import defining_ops, disagrees
from comet.passes.analysis.row_statistics import ELEMENTWISE
from comet.passes.dataflow.launches import Needs
from comet.passes.schedule.fuse.gpu.groups import (
    Group,
    Part,
    Partition,
    in_stages,
)

REUSING = (ContractOp, FoldOp)
"""Ops that read an operand in several tiles, for each of which it is recomputed."""


Values: TypeAlias = tuple[SSAValue, ...]


class Prices(Protocol):
    """The times of kernels, in seconds."""

    def seconds(self, group: Group, outs: Values) -> float:
        """
        Return the time to make `outs` with the best form and tiles.

        Infinite if none is legal.
        """
        ...

    def least(self, group: Group, outs: Values) -> float:
        """Return a lower bound of that time."""
        ...

    def launched(self, needs: Needs[tuple[Group, Values]]) -> float:
        """Return the time of kernels, each with its outs, with the best launches."""
        ...


def priority_partition(
    ops: Sequence[Operation],
    prices: Prices,
    again: AbstractSet[Operation] = frozenset(),
    start: Partition = (),
) -> Partition:
    """
    Return `ops` as kernels, views and collectives, in order.

    Kernels that need ops of `again` have them all. The kernels of `start` stay together
    and are merged with others.
    """
    graph = _Graph(in_stages(ops), again)
    for part in start:
        if isinstance(part, tuple):
            graph.join(part)
    graph.add_epilogues()
    graph.add_prologues()
    _merge_by_gain(graph, prices)
    _undo_merges(graph, prices)
    return graph.partition()


def inputs_of(group: Group) -> tuple[SSAValue, ...]:
    """Return what a group reads, without constants."""
    inside = set(group)
    values = dict.fromkeys(value for op in group for value in op.operands)
    return tuple(
        value
        for value in values
        if value.owner not in inside and not isinstance(value.owner, FillOp)
    )


def _merge_by_gain(graph: _Graph, prices: Prices) -> None:
    """Merge the two kernels with the largest gain, as long as there is one."""
    number, pending = count(), list[_Merge]()

    def seconds(group: Group) -> float:
        return prices.seconds(group, graph.outputs_of(group))

    def propose(one: Group, other: Group) -> None:
        merged = graph.merged(one, other)
        least = prices.least(merged, graph.outputs_of(merged))
        bound = seconds(one) + seconds(other) - least
        heappush(pending, _Merge(-bound, next(number), False, one, other))

    for group in graph.kernels():
        for other in graph.neighbours(group, later=True):
            propose(group, other)
    while pending and pending[0].loss < 0:
        best = heappop(pending)
        if not graph.can_merge(best.one, best.other):
            continue
        merged = graph.merged(best.one, best.other)
        if best.priced:
            graph.merge(merged, best.one, best.other)
            for other in graph.neighbours(merged):
                propose(merged, other)
        else:
            before = seconds(best.one) + seconds(best.other)
            after = seconds(merged)
            loss = after - before if isfinite(after) else inf
            heappush(pending, _Merge(loss, next(number), True, best.one, best.other))


def _undo_merges(graph: _Graph, prices: Prices) -> None:
    """Undo the last merge of the kernel that saves most by it, while one saves any."""
    least = prices.launched(graph.needs())
    while True:
        undone: dict[Group, float] = {}
        for group in tuple(graph.kernels()):
            if graph.undo(group):
                undone[group] = prices.launched(graph.needs())
                graph.redo(group)
        best = min(undone, key=undone.__getitem__, default=None)
        if best is None or undone[best] >= least:
            return
        least = undone[best]
        graph.undo(best)


@dataclass(frozen=True, order=True)
class _Merge:
    """A merge of two kernels, in the order in which they are tried."""

    loss: float
    """The gain, or its upper bound, times -1: the smallest comes first."""
    number: int
    """Of equals, the first comes first."""
    priced: bool
    one: Group = field(compare=False)
    other: Group = field(compare=False)


class _Graph:
    """
    Kernels, views and collectives, each as a group of ops, and what reads what.

    Ops of `again` are in each group that needs them, and have none of their own.
    """

    def __init__(self, ops: Sequence[Operation], again: AbstractSet[Operation]):
        self._again = again
        self._position = {op: index for index, op in enumerate(ops)}
        self._group_of = dict[Operation, Group]()
        self._users_of: dict[SSAValue, frozenset[Operation]] = {}
        self._outputs: dict[Group, Values] = {}
        self._merged_of: dict[Group, tuple[Group, ...]] = {}
        for op in ops:
            self.join((op,))

    def join(self, ops: Iterable[Operation]) -> None:
        """Put ops into one group, with what it computes again."""
        own = [op for op in ops if op not in self._again]
        read = (value for op in own for value in op.operands)
        if own:
            self.merge(self._in_order({*own, *defining_ops(read, self._again)}))

    def _groups(self) -> tuple[Group, ...]:
        return tuple(dict.fromkeys(self._group_of.values()))

    def kernels(self) -> Iterator[Group]:
        """Yield the groups that are no view and no collective."""
        return filter(_is_kernel, self._groups())

    def merged(self, one: Group, other: Group) -> Group:
        """Return the ops of two groups in order."""
        return self._in_order({*one, *other})

    def _in_order(self, ops: Iterable[Operation]) -> Group:
        return tuple(sorted(ops, key=self._position.__getitem__))

    def merge(self, group: Group, *parts: Group) -> None:
        """Put the ops of `group` into one group, of `parts` if that may be undone."""
        own = (op for op in group if op not in self._again)
        self._group_of.update(dict.fromkeys(own, group))
        if parts:
            self._merged_of[group] = parts

    def undo(self, group: Group) -> bool:
        """Undo the merge that made `group`; return False if none did."""
        parts = self._merged_of.get(group, ())
        for part in parts:
            self.merge(part)
        return bool(parts)

    def redo(self, group: Group) -> None:
        """Merge again what `undo` has put into groups of their own."""
        self.merge(group)

    def needs(self) -> Needs[tuple[Group, Values]]:
        """Return the kernels, each with its outs, and which each one reads from."""
        parts = [part for part in self.partition() if isinstance(part, tuple)]
        kernels = {part: (part, self.outputs_of(part)) for part in parts}
        read = {
            kernel: frozenset(kernels[made] for made in self._kernels_before(part))
            for part, kernel in kernels.items()
        }
        return Needs(tuple(read), read)

    def _kernels_before(self, group: Group) -> Iterator[Group]:
        """Yield the kernels that `group` reads from, also by views."""
        for made in self._makers(group):
            if _is_kernel(made):
                yield made
            else:
                yield from self._kernels_before(made)

    def _lead(self, group: Group) -> Operation:
        """Return the first op of a group that is in no other one."""
        return next(op for op in group if op not in self._again)

    def outputs_of(self, group: Group) -> Values:
        """Return the results of a group that are used outside of it."""
        if group not in self._outputs:
            inside = set(group)
            self._outputs[group] = tuple(
                result
                for op in group
                if op not in self._again
                for result in op.results
                if not inside.issuperset(self._used_by(result))
            )
        return self._outputs[group]

    def _used_by(self, value: SSAValue) -> frozenset[Operation]:
        """Return the ops that need a value, also to compute others again."""
        if value not in self._users_of:
            found = set[Operation]()
            for user in (use.operation for use in value.uses):
                if user in self._again:
                    found.update(*map(self._used_by, user.results))
                else:
                    found.add(user)
            self._users_of[value] = frozenset(found)
        return self._users_of[value]

    def can_merge(self, one: Group, other: Group) -> bool:
        """Return whether both are still there, and one kernel may have both."""
        return (
            all(self._group_of[self._lead(each)] == each for each in (one, other))
            and not disagrees(one, other)
            and not self._passes_third(one, other)
            and not self._passes_third(other, one)
        )

    def _passes_third(self, source: Group, target: Group) -> bool:
        """Return whether a value goes from `source` to `target` through others."""
        seen = {source}
        pending = [group for group in self._readers(source) if group != target]
        while pending:
            if (group := pending.pop()) == target:
                return True
            if group not in seen:
                seen.add(group)
                pending += self._readers(group)
        return False

    def _makers(self, group: Group) -> tuple[Group, ...]:
        """Return the groups that compute what `group` reads."""
        owners = (value.owner for value in inputs_of(group))
        found = (self._group_of.get(op) for op in owners if isinstance(op, Operation))
        return tuple(dict.fromkeys(made for made in found if made is not None))

    def _readers(self, group: Group) -> tuple[Group, ...]:
        """Return the groups that read what `group` computes."""
        return self._users(self.outputs_of(group), group)

    def _users(self, values: Iterable[SSAValue], group: Group) -> tuple[Group, ...]:
        """Return the groups but `group` that read one of `values`, in order."""
        users = set[Operation]().union(*map(self._used_by, values))
        known = sorted(users & self._position.keys(), key=self._position.__getitem__)
        found = dict.fromkeys(self._group_of[op] for op in known)
        return tuple(other for other in found if other != group)

    def neighbours(self, group: Group, *, later: bool = False) -> Iterator[Group]:
        """
        Yield the kernels that a value connects with `group`, read or computed by both.

        With `later` only those whose first op comes after that of `group`.
        """
        makers = self._makers(group)
        siblings = self._users(inputs_of(group), group)
        found = dict.fromkeys((*makers, *siblings, *self._readers(group)))
        first = self._position[self._lead(group)]
        for other in filter(_is_kernel, found):
            if not later or self._position[self._lead(other)] > first:
                yield other

    def add_epilogues(self) -> None:
        """
        Merge elementwise ops with what computes an operand for them alone.

        With what they compute again, if that reads nothing else.
        """
        for op in self._group_of:
            group, makers = self._group_of[op], self._makers((op,))
            if isinstance(op, ELEMENTWISE) and len(makers) == 1:
                (maker,) = makers
                again = tuple(each for each in group if each in self._again)
                if not set(inputs_of(again)).issubset(inputs_of(maker)):
                    continue
                made = [value for value in op.operands if value.owner in maker]
                if all(_is_for(value, op) for value in made):
                    self._join(group, maker)

    def add_prologues(self) -> None:
        """Merge elementwise ops with the only op that reads them."""
        for op in reversed(self._group_of):
            group = self._group_of[op]
            readers = self._readers(group)
            if (
                all(isinstance(each, ELEMENTWISE) for each in group)
                and len(readers) == len(self.outputs_of(group)) == 1
                and not any(isinstance(each, REUSING) for each in readers[0])
            ):
                self._join(group, readers[0])

    def _join(self, group: Group, other: Group) -> None:
        if _is_kernel(other) and self.can_merge(group, other):
            self.merge(self.merged(group, other))

    def partition(self) -> Partition:
        """Return the groups, each after those that compute what it reads."""
        pending = sorted(self._groups(), key=lambda group: self._position[group[-1]])
        done, parts = set[Group](), list[Part]()
        while pending:
            ready = next(g for g in pending if done.issuperset(self._makers(g)))
            pending.remove(ready)
            done.add(ready)
            first = ready[0]
            border = isinstance(first, View | CollectiveOp)
            parts.append(first if border else ready)
        return tuple(parts)


def _is_for(value: SSAValue, op: Operation) -> bool:
    """Return whether only `op` reads a value, and has no other dimensions."""
    same = set(names_of(value)) == set(names_of(op.results[0]))
    return same and all(use.operation is op for use in value.uses)


def _is_kernel(group: Group) -> bool:
    return not isinstance(group[0], View | CollectiveOp)
