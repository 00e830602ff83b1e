"""
Priority fusion: kernels are merged two at a time, the pair with the largest gain first.

At first every op is a kernel, except elementwise ops, which join a producer or reader.
Then the two kernels whose merge saves most time are merged, until no merge saves time.
A merge is legal if no value goes from one kernel to the other through a third, and if
no dimension has two extents. The gain of a merge is the time of two launches less that
of one, with the best tiles. It is priced only when its upper bound, which needs no
tiles, is the largest gain or bound of all.

These gains count one launch for each kernel, but kernels that do not depend on each
other may share one. So then, merges are undone as long as that saves time. At last,
kernels of products also do what reads their results, as to add a residual, where that
saves time together with the merges that it allows.

Recomputed ops are in every kernel that needs them, and are no kernels themselves: their
results are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite
from typing import Protocol, TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import (
    ContractOp,
    Elementwise,
    FoldOp,
)
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.op_groups import defining_ops, disagrees
from comet.passes.dataflow.launches import Needs
from comet.passes.schedule.fuse.gpu.groups import (
    Border,
    Group,
    Kernel,
    Part,
    Partition,
    Values,
    in_stages,
    inputs_of,
)
from comet.passes.schedule.fuse.gpu.scatters import meet_in_memory, units

REUSING = (ContractOp, FoldOp)
"""Ops that may read a tile several times, and would recompute it each time."""


class Prices(Protocol):
    """Prices kernels, in seconds; `Forms` does, and tests by counting."""

    def seconds(self, group: Group, outs: Values) -> float:
        """
        Return the time to compute `outs` with the best form and tiles.

        Infinite if no form is legal.
        """
        ...

    def least(self, group: Group, outs: Values) -> float:
        """Return a lower bound of `seconds`, which is quicker to compute."""
        ...

    def launched(self, needs: Needs[Kernel]) -> float:
        """Return the time of all kernels with the best launches."""
        ...


def priority_partition(
    ops: Sequence[Operation],
    prices: Prices,
    recomputed: AbstractSet[Operation] = frozenset(),
    start: Partition = (),
) -> Partition:
    """
    Return `ops` as kernels, views and collectives, in order.

    Every kernel that needs ops of `recomputed` has them. Merging begins with the
    kernels of `start`, if there are any.
    """
    graph = _Graph(in_stages(ops), recomputed)
    for part in start:
        if isinstance(part, tuple):
            graph.join(part)
    graph.add_epilogues()
    graph.add_prologues()
    _merge_by_gain(graph, prices)
    _undo_merges(graph, prices)
    _move_epilogues(graph, prices)
    return graph.partition()


def _merge_by_gain(
    graph: _Graph, prices: Prices, changed: Iterable[Group] | None = None
) -> None:
    """
    Merge the two kernels with the largest gain, as long as one is positive.

    If some kernels are `changed`, only merges with these are new.
    """
    number, pending = count(), list[_Merge]()

    def seconds(group: Group) -> float:
        return prices.seconds(group, graph.outputs_of(group))

    def propose(one: Group, other: Group) -> None:
        merged = graph.merged(one, other)
        least = prices.least(merged, graph.outputs_of(merged))
        bound = seconds(one) + seconds(other) - least
        heappush(pending, _Merge(-bound, next(number), False, one, other))

    if changed is None:
        for group in graph.kernels():
            for other in graph.neighbours(group, later=True):
                propose(group, other)
    for group in changed or ():
        for other in graph.neighbours(group):
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
            heappush(pending, replace(best, loss=loss, priced=True))


def _undo_merges(graph: _Graph, prices: Prices) -> None:
    """Undo the merge whose undoing saves most time, as long as one saves time."""
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


def _move_epilogues(graph: _Graph, prices: Prices) -> None:
    """
    Move each epilogue of a product to its kernel if that saves time.

    What is left of the epilogue's kernel may be merged with others then.
    """
    least = prices.launched(graph.needs())
    for ops in tuple(graph.epilogues()):
        before, moved = graph.state(), inf
        if changed := graph.move(ops):
            _merge_by_gain(graph, prices, changed)
            moved = prices.launched(graph.needs())
        if moved < least:
            least = moved
        else:
            graph.restore(before)


@dataclass(frozen=True, order=True)
class _Merge:
    """A possible merge of two kernels; the heap has the largest gain first."""

    loss: float
    """Minus the gain, or minus its upper bound if it is not `priced` yet."""
    number: int
    """The order of insertion, which decides between equal gains."""
    priced: bool
    one: Group = field(compare=False)
    other: Group = field(compare=False)


_State: TypeAlias = tuple[dict[Operation, Group], dict[Group, tuple[Group, ...]]]


class _Graph:
    """
    A graph of groups of ops: kernels, views and collectives.

    Ops of `recomputed` are in each group that needs them, and form no group themselves.
    """

    def __init__(self, ops: Sequence[Operation], recomputed: AbstractSet[Operation]):
        self._recomputed = recomputed
        self._position = {op: index for index, op in enumerate(ops)}
        self._group_of = dict[Operation, Group]()
        self._users_of: dict[SSAValue, frozenset[Operation]] = {}
        self._outputs: dict[Group, Values] = {}
        self._merged_of: dict[Group, tuple[Group, ...]] = {}
        self._readers_of: dict[Group, tuple[Group, ...]] = {}
        """Those that were asked for since the groups last changed."""
        for unit in units(ops):
            self.join(unit)

    def join(self, ops: Iterable[Operation]) -> None:
        """Make one group of ops and the recomputed ops that they need."""
        own = [op for op in ops if op not in self._recomputed]
        read = (value for op in own for value in op.operands)
        if own:
            self.merge(self._in_order({*own, *defining_ops(read, self._recomputed)}))

    def _groups(self) -> tuple[Group, ...]:
        return tuple(dict.fromkeys(self._group_of.values()))

    def kernels(self) -> Iterator[Group]:
        """Yield the groups that are kernels, not views or collectives."""
        return filter(_is_kernel, self._groups())

    def merged(self, one: Group, other: Group) -> Group:
        """Return the ops of two groups, in program order."""
        return self._in_order({*one, *other})

    def _in_order(self, ops: Iterable[Operation]) -> Group:
        return tuple(sorted(ops, key=self._position.__getitem__))

    def merge(self, group: Group, *parts: Group) -> None:
        """Make `group` a group; with `parts`, remember that it was merged from them."""
        own = (op for op in group if op not in self._recomputed)
        self._group_of.update(dict.fromkeys(own, group))
        self._readers_of.clear()
        if parts:
            self._merged_of[group] = parts

    def undo(self, group: Group) -> bool:
        """Undo the merge that made `group`; return False if there was none."""
        parts = self._merged_of.get(group, ())
        for part in parts:
            self.merge(part)
        return bool(parts)

    def redo(self, group: Group) -> None:
        """Take back `undo`."""
        self.merge(group)

    def state(self) -> _State:
        """Return what `restore` needs to undo all later merges and moves."""
        return dict(self._group_of), dict(self._merged_of)

    def restore(self, state: _State) -> None:
        """Go back to a former state."""
        self._group_of, self._merged_of = state
        self._readers_of.clear()

    def epilogues(self) -> Iterator[Group]:
        """
        Yield the elementwise ops that could end a kernel of products.

        These are a chain: each alone reads the result of the one before, with the same
        dimensions, and the first one what a kernel stores. They are in a kernel with
        other ops.
        """
        for group in self.kernels():
            if any(isinstance(op, ContractOp) for op in group):
                for value in self.outputs_of(group):
                    chain = tuple(self._chain_after(value))
                    if chain and set(chain) != set(self._own(self._group_of[chain[0]])):
                        yield chain

    def _chain_after(self, value: SSAValue) -> Iterator[Operation]:
        """Yield the elementwise ops of one group that only read `value`, in a chain."""
        group: Group | None = None
        while len(users := self._used_by(value)) == 1:
            (op,) = users
            here = self._group_of.get(op, ())
            alike = isinstance(op, Elementwise) and _same_dims(value, op)
            if not alike or here != (group or here):
                return
            yield op
            group, value = here, op.results[0]

    def move(self, ops: Group) -> tuple[Group, ...]:
        """
        Move a part of a kernel to the only other one that makes something for it.

        Returns the two kernels after that; empty if it is not legal.
        """
        rest = [op for op in self._own(self._group_of[ops[0]]) if op not in ops]
        if not rest:
            return ()
        self.join(ops)
        self.join(rest)
        own, left = self._group_of[ops[0]], self._group_of[rest[0]]
        makers = self._makers(own)
        if left in makers or len(makers) != 1 or not self.can_merge(own, makers[0]):
            return ()
        self._join(own, makers[0])
        return self._group_of[ops[0]], left

    def _own(self, group: Group) -> tuple[Operation, ...]:
        """Return the ops of a group that are not recomputed."""
        return tuple(op for op in group if op not in self._recomputed)

    def needs(self) -> Needs[Kernel]:
        """Return the kernels with their outputs, and those that each one reads from."""
        parts = [part for part in self.partition() if isinstance(part, tuple)]
        kernels = {part: (part, self.outputs_of(part)) for part in parts}
        read = {
            kernel: frozenset(kernels[made] for made in self._kernels_before(part))
            for part, kernel in kernels.items()
        }
        return Needs(tuple(read), read)

    def _kernels_before(self, group: Group) -> Iterator[Group]:
        """Yield the kernels that `group` reads from, directly or through views."""
        for made in self._makers(group):
            if _is_kernel(made):
                yield made
            else:
                yield from self._kernels_before(made)

    def _lead(self, group: Group) -> Operation:
        """Return the first op of a group that is not recomputed: it identifies it."""
        return next(op for op in group if op not in self._recomputed)

    def outputs_of(self, group: Group) -> Values:
        """Return the results of a group that other groups use."""
        if group not in self._outputs:
            inside = set(group)
            self._outputs[group] = tuple(
                result
                for op in group
                if op not in self._recomputed
                for result in op.results
                if not inside.issuperset(self._used_by(result))
            )
        return self._outputs[group]

    def _used_by(self, value: SSAValue) -> frozenset[Operation]:
        """Return the ops that use a value, directly or through recomputed ops."""
        if value not in self._users_of:
            found = set[Operation]()
            for user in (use.operation for use in value.uses):
                if user in self._recomputed:
                    found.update(*map(self._used_by, user.results))
                else:
                    found.add(user)
            self._users_of[value] = frozenset(found)
        return self._users_of[value]

    def can_merge(self, one: Group, other: Group) -> bool:
        """Return whether both still exist, and their merge is legal."""
        return (
            all(self._group_of[self._lead(each)] == each for each in (one, other))
            and not disagrees(one, other)
            and not meet_in_memory(one, other)
            and not self._passes_third(one, other)
            and not self._passes_third(other, one)
        )

    def _passes_third(self, source: Group, target: Group) -> bool:
        """Return whether `target` depends on `source` through another group."""
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
        if group not in self._readers_of:
            self._readers_of[group] = self._users(self.outputs_of(group), group)
        return self._readers_of[group]

    def _users(self, values: Iterable[SSAValue], group: Group) -> tuple[Group, ...]:
        """Return the other groups that read one of `values`, in program order."""
        users = set[Operation]().union(*map(self._used_by, values))
        known = sorted(users & self._position.keys(), key=self._position.__getitem__)
        found = dict.fromkeys(self._group_of[op] for op in known)
        return tuple(other for other in found if other != group)

    def neighbours(self, group: Group, *, later: bool = False) -> Iterator[Group]:
        """
        Yield the producers and readers of `group`, and kernels with a common input.

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
        Merge each elementwise op with the only producer it has, if it is the only user.

        Its recomputed ops must not read inputs that the producer does not read.
        """
        for op in self._group_of:
            group, makers = self._group_of[op], self._makers((op,))
            if isinstance(op, Elementwise) and len(makers) == 1:
                (maker,) = makers
                recomputed = tuple(each for each in group if each in self._recomputed)
                if not set(inputs_of(recomputed)).issubset(inputs_of(maker)):
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
                all(isinstance(each, Elementwise) for each in group)
                and len(readers) == len(self.outputs_of(group)) == 1
                and not any(isinstance(each, REUSING) for each in readers[0])
            ):
                self._join(group, readers[0])

    def _join(self, group: Group, other: Group) -> None:
        if _is_kernel(other) and self.can_merge(group, other):
            self.merge(self.merged(group, other))

    def partition(self) -> Partition:
        """Return the groups in an order in which producers come first."""
        pending = sorted(self._groups(), key=lambda group: self._position[group[-1]])
        done, parts = set[Group](), list[Part]()
        while pending:
            ready = next(g for g in pending if done.issuperset(self._makers(g)))
            pending.remove(ready)
            done.add(ready)
            first = ready[0]
            border = isinstance(first, Border)
            parts.append(first if border else ready)
        return tuple(parts)


def _is_for(value: SSAValue, op: Operation) -> bool:
    """Return whether only `op` reads a value, and has the same dimensions."""
    return _same_dims(value, op) and all(use.operation is op for use in value.uses)


def _same_dims(value: SSAValue, op: Operation) -> bool:
    """Return whether the result of an op has the dimensions of a value."""
    return set(names_of(value)) == set(names_of(op.results[0]))


def _is_kernel(group: Group) -> bool:
    return not isinstance(group[0], Border)
