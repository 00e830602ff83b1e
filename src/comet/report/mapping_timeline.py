"""When the nodes of a mapping run, as the model `paper` predicts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from comet.codegen.chrome_trace import Slice
from comet.cost.accelerator.bindings import Group, lanes_of
from comet.cost.accelerator.flow import build_flows
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.ideal import ideal_cost
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.latency import Latency, latencies
from comet.cost.accelerator.paper.nest import NestCost
from comet.cost.accelerator.problem import Collective, Node, Problem, Tile
from comet.cost.estimate import ModelName
from comet.cost.reals import longest

EXPANDED = 8
"""Iterations of the outermost loop that are shown one by one."""


def timeline(
    problem: Problem, hardware: Hardware, model: ModelName, names: Mapping[int, str]
) -> tuple[Slice, ...]:
    """
    Return the timeline of a mapping, in cycles; first iterations are complete.

    Slices are nodes, first reads, compute, last writes, collectives or iterations; each
    is in a row above its parts. Later iterations of the outermost loop all have the
    average length. Under `ideal` operations run one after the other. `names` are the
    names of nodes by index.
    """
    mappings = Mappings(problem)
    flows = build_flows(mappings, hardware)
    if model == "ideal":
        busy = ideal_cost(mappings, hardware, flows).busy
        lengths = {tag: float(longest(parts.values())) for tag, parts in busy.items()}
        return tuple(_one_after_other(lengths))
    placing = _Placing(latencies(mappings, hardware, flows), names)
    return tuple(placing.nodes((problem.root,), _Span(0.0, 1.0), 0, expand=True))


def _one_after_other(lengths: Mapping[str, float]) -> Iterator[Slice]:
    start = 0.0
    for index, (name, cycles) in enumerate(lengths.items()):
        yield _timed(name, "compute", start, cycles, 0, index)
        start += cycles


def _timed(
    name: str, kind: str, start: float, cycles: float, row: int, node: int
) -> Slice:
    return Slice(name, kind, start, cycles, row, {"node": node, "cycles": cycles})


@dataclass(frozen=True)
class _Span:
    """A start in cycles, and a factor for the predicted lengths after it."""

    start: float
    scale: float

    def after(self, cycles: float) -> _Span:
        """Return the span that starts later by `cycles` of the model."""
        return _Span(self.start + cycles * self.scale, self.scale)


@dataclass(frozen=True)
class _Loop:
    """Children of a node that run one after the other, `count` times."""

    tile: Tile
    members: tuple[Node, ...]
    count: float
    nest: NestCost | None
    """The node's own transfers, if it moves tiles for these children."""

    @property
    def ramps(self) -> tuple[float, float]:
        """Cycles before the first iteration, and after the last."""
        nest = self.nest
        return (0.0, 0.0) if nest is None else (float(nest.fill), float(nest.drain))


def _loops(
    tile: Tile, group: Group, count: float, nests: Iterator[NestCost]
) -> Iterator[_Loop]:
    """
    Yield the loops of a group; `nests` are the transfers of the node, in their order.

    Below a temporal node each child has its own loop; a spatial child iterates itself.
    """
    if tile.spatial or tile.is_leaf:
        yield _Loop(tile, group.members, count, next(nests))
        return
    for member in group.members:
        if isinstance(member, Collective):
            yield _Loop(tile, (member,), count, None)
        elif isinstance(member, Tile) and member.spatial:
            yield _Loop(tile, (member,), 1.0, None)
        else:
            yield _Loop(tile, (member,), count, next(nests))


@dataclass(frozen=True)
class _Placing:
    """Places nodes in time."""

    latency: Latency
    names: Mapping[int, str]

    def nodes(
        self, nodes: Sequence[Node], at: _Span, row: int, *, expand: bool
    ) -> Iterator[Slice]:
        """Yield one execution of each node, one after the other."""
        for node in nodes:
            kind = "collective" if isinstance(node, Collective) else "node"
            cycles = self._cycles((node,))
            yield self._slice(node, kind, self.names[node.index], at, cycles, row)
            if isinstance(node, Tile):
                yield from self._inside(node, at, row + 1, expand=expand)
            at = at.after(cycles)

    def _cycles(self, nodes: Sequence[Node]) -> float:
        return sum(float(self.latency.nodes[node.index].cycles) for node in nodes)

    @staticmethod
    def _slice(
        node: Node, kind: str, name: str, at: _Span, cycles: float, row: int
    ) -> Slice:
        return _timed(name, kind, at.start, cycles * at.scale, row, node.index)

    def _inside(
        self, tile: Tile, at: _Span, row: int, *, expand: bool
    ) -> Iterator[Slice]:
        """Yield the slices inside a node; groups that overlap are in other rows."""
        nests = iter(self.latency.nests.get(tile.index, ()))
        count = float(self.latency.flows.iterations(tile))
        for lane in lanes_of(tile):
            start = at
            for group in lane:
                length, below = 0.0, row
                for loop in _loops(tile, group, count, nests):
                    begin = start.after(length)
                    for slice_ in self._loop(loop, begin, row, expand=expand):
                        below = max(below, slice_.row + 1)
                        yield slice_
                    length += self._length(loop)
                start, row = start.after(length / count), below

    def _length(self, loop: _Loop) -> float:
        """Return the cycles of all iterations, ramps included."""
        if loop.nest is not None:
            return float(loop.nest.cycles)
        return loop.count * self._cycles(loop.members)

    def _loop(
        self, loop: _Loop, at: _Span, row: int, *, expand: bool
    ) -> Iterator[Slice]:
        """Yield the ramps of a loop, and its iterations between them."""
        tile, (first, last), length = loop.tile, loop.ramps, self._length(loop)
        body, end = at.after(first), at.after(length - last)
        if first:
            yield self._slice(tile, "first reads", "first reads", at, first, row)
        if tile.is_leaf:
            name = self.names[tile.leaf.index]
            cycles = length - first - last
            yield self._slice(tile, "compute", name, body, cycles, row)
        else:
            yield from self._iterations(
                loop, body, length - first - last, row, expand=expand
            )
        if last:
            yield self._slice(tile, "last writes", "last writes", end, last, row)

    def _iterations(
        self, loop: _Loop, at: _Span, length: float, row: int, *, expand: bool
    ) -> Iterator[Slice]:
        """Yield the first iterations one by one, and one slice for all others."""
        once, count = self._cycles(loop.members), round(loop.count)
        inner = expand and count == 1
        yield from self.nodes(loop.members, at, row, expand=inner)
        if count == 1 or not once:
            return
        repeated = (length - once) / (count - 1)
        shown = min(count, EXPANDED) if expand else 1
        for number in range(shown - 1):
            start = at.after(once + number * repeated).start
            span = _Span(start, at.scale * repeated / once)
            yield from self.nodes(loop.members, span, row, expand=False)
        if shown < count:
            name = f"iterations {shown + 1} to {count}"
            rest = at.after(once + (shown - 1) * repeated)
            cycles = (count - shown) * repeated
            yield self._slice(loop.tile, "iterations", name, rest, cycles, row)
