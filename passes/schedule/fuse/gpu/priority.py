"""
Priority fusion: kernels are merged two at a time, the pair with the largest gain first.

At first every op is a kernel, except elementwise ops, which join their producer or
consumer. Then the two kernels whose merge saves most time are merged, until no merge
saves time. A merge is legal if no value goes from one kernel to the other through a
third, and if no dimension has two extents. The gain of a merge is the time of two
launches less that of one, with the best tiles. It is priced only when its upper bound,
which needs no tiles, is the largest gain or bound of all; a rough bound comes before a
close one. Eager merging does not wait for bounds that are a little above a known gain:
which of two almost equal merges comes first is a guess, and the other guess may be
better.

These gains count one launch for each kernel, but kernels that do not depend on each
other may share one. So then, merges are undone as long as that saves time. Which merge
comes first also decides which later ones are legal: so each merge is undone once more,
and its two kernels are merged with others where that saves time. Then epilogues move: a
kernel of products also computes the ops that read its results, such as the addition of
a residual, where that saves time together with the merges that it allows. At last,
products that only have an input in common, such as queries, keys and values, are
separated where that saves time. What merges partial sums is not: it may become a part
of the launch of the products, which prices here do not see.

Recomputed ops are in every kernel that needs them, and are no kernels themselves: their
results are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite
from typing import Protocol

from xdsl.ir import Operation

from comet.passes.dataflow.launches import Dependences
from comet.passes.schedule.fuse.gpu.groups import (
    Group,
    Kernel,
    Partition,
    Values,
    in_stages,
)
from comet.passes.schedule.fuse.gpu.kernel_graph import Groups, KernelGraph

EAGER = 1.2
"""How far bounds may be above the gain of a merge that is made eagerly."""

PRICE = 2
"""The number of the last estimate of a merge; 0 and 1 are bounds."""


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

    def roughly(self, group: Group, outs: Values) -> float:
        """Return a lower bound of `least`, which is quicker still."""
        ...

    def launched(self, needs: Dependences[Kernel]) -> float:
        """Return the time of all kernels with the best launches."""
        ...


def priority_partition(
    ops: Sequence[Operation],
    prices: Prices,
    recomputed: AbstractSet[Operation] = frozenset(),
    start: Partition = (),
    *,
    eager: bool = False,
) -> Partition:
    """
    Return `ops` as kernels, views and collectives, in order.

    Every kernel that needs ops of `recomputed` has them. Merging begins with the
    kernels of `start`, if there are any.
    """
    graph = _first_graph(ops, recomputed, start)
    eagerness = EAGER if eager else 1.0
    _merge_by_gain(graph, prices, eagerness)
    _undo_merges(graph, prices)
    _merge_otherwise(graph, prices)
    _move_epilogues(graph, prices, eagerness)
    _separate_kernels(graph, prices)
    return graph.partition()


def first_kernels(ops: Sequence[Operation]) -> tuple[Kernel, ...]:
    """Return the kernels that priority fusion begins with, if it recomputes nothing."""
    graph = _first_graph(ops, frozenset(), ())
    return tuple((group, graph.outputs_of(group)) for group in graph.kernels())


def _first_graph(
    ops: Sequence[Operation], recomputed: AbstractSet[Operation], start: Partition
) -> KernelGraph:
    """Return the graph of kernels before any are merged by gain."""
    graph = KernelGraph(in_stages(ops), recomputed)
    for group in start:
        graph.add(group)
    graph.add_epilogues()
    graph.add_prologues()
    return graph


@dataclass(frozen=True, order=True)
class _Merge:
    """A possible merge of two kernels; the heap has the largest gain first."""

    loss: float
    """Minus the gain times `eagerness`, or minus an upper bound before it is priced."""
    number: int
    """The order of insertion, which decides between equal gains."""
    known: int
    """The number of the estimate, see PRICE; -1 if there is none yet."""
    one: Group = field(compare=False)
    other: Group = field(compare=False)


def _merge_by_gain(
    graph: KernelGraph,
    prices: Prices,
    eagerness: float,
    changed: Iterable[Group] | None = None,
    apart: Groups = (),
) -> None:
    """
    Merge the two kernels with the largest gain, as long as one is positive.

    Gains count `eagerness` times as much as bounds. If some kernels are `changed`, only
    merges with these are new. The two of `apart` are not merged with each other.
    """
    merges = _Merges(graph, prices, eagerness, set(apart))
    if changed is None:
        for group in graph.kernels():
            merges.propose(group, graph.neighbours(group, later=True))
    for group in changed or ():
        merges.propose(group, graph.neighbours(group))
    while (best := merges.next()) is not None:
        merged = graph.merge(best.one, best.other)
        merges.propose(merged, graph.neighbours(merged))


@dataclass
class _Merges:
    """The possible merges of a graph of kernels, that of the largest gain first."""

    graph: KernelGraph
    prices: Prices
    eagerness: float
    """How much more than a bound the gain of a merge counts."""
    apart: AbstractSet[Group]
    """Two kernels that are not merged with each other, or none."""
    pending: list[_Merge] = field(default_factory=list[_Merge])
    """A heap."""
    number: Iterator[int] = field(default_factory=count)

    def propose(self, group: Group, others: Iterable[Group]) -> None:
        """Add the merges of a kernel with others, each with its first estimate."""
        for other in others:
            if {group, other} != self.apart:
                self._estimate(_Merge(0.0, next(self.number), -1, group, other))

    def next(self) -> _Merge | None:
        """Take the merge with the largest gain, None if none saves time."""
        while self.pending and self.pending[0].loss < 0:
            best = heappop(self.pending)
            if not self.graph.can_merge(best.one, best.other):
                continue
            if best.known == PRICE:
                return best
            self._estimate(best)
        return None

    def _estimate(self, merge: _Merge) -> None:
        """Put a merge back with its next, closer estimate; the last is its price."""
        prices, known = self.prices, merge.known + 1
        estimates = (prices.roughly, prices.least, prices.seconds)
        merged = self.graph.merged(merge.one, merge.other)
        before = sum(self._seconds(each) for each in (merge.one, merge.other))
        after = estimates[known](merged, self.graph.outputs_of(merged))
        loss = after - before if isfinite(after) else inf
        if known == PRICE:
            loss *= self.eagerness
        again = _Merge(loss, merge.number, known, merge.one, merge.other)
        heappush(self.pending, again)

    def _seconds(self, group: Group) -> float:
        return self.prices.seconds(group, self.graph.outputs_of(group))


def _undo_merges(graph: KernelGraph, prices: Prices) -> None:
    """
    Undo merges as long as that saves time.

    In each round all are tried, and then undone in the order of what that saves.
    """
    least, before = prices.launched(graph.dependences()), inf
    while least < before:
        before, undone = least, dict[Group, float]()
        for group in tuple(graph.kernels()):
            if graph.undo(group):
                undone[group] = prices.launched(graph.dependences())
                graph.redo(group)
        for group in sorted(undone, key=undone.__getitem__):
            if undone[group] < before and graph.undo(group):
                if (seconds := prices.launched(graph.dependences())) < least:
                    least = seconds
                else:
                    graph.redo(group)


def _merge_otherwise(graph: KernelGraph, prices: Prices) -> None:
    """Undo each merge, and merge the two kernels with others, if that saves time."""
    least = prices.launched(graph.dependences())
    for group in tuple(graph.kernels()):
        before, moved = graph.state(), inf
        if apart := graph.undo(group):
            _merge_by_gain(graph, prices, 1.0, apart, apart)
            moved = prices.launched(graph.dependences())
        if moved < least:
            least = moved
        else:
            graph.restore(before)


def _move_epilogues(graph: KernelGraph, prices: Prices, eagerness: float) -> None:
    """
    Move each epilogue of a product to its kernel if that saves time.

    What is left of the epilogue's kernel may be merged with others then.
    """
    least = prices.launched(graph.dependences())
    for ops in tuple(graph.epilogues()):
        before, moved = graph.state(), inf
        if changed := graph.move(ops):
            _merge_by_gain(graph, prices, eagerness, changed)
            moved = prices.launched(graph.dependences())
        if moved < least:
            least = moved
        else:
            graph.restore(before)


def _separate_kernels(graph: KernelGraph, prices: Prices) -> None:
    """Separate products that only have inputs in common, if that saves time."""
    least = prices.launched(graph.dependences())
    for group in tuple(graph.kernels()):
        before = graph.state()
        if graph.separate(group):
            if (seconds := prices.launched(graph.dependences())) < least:
                least = seconds
            else:
                graph.restore(before)
