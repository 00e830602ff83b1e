"""
The tile trees of an accelerator's nests.

A nest alternates temporal and spatial nodes: root, clusters, shared buffer, cores, op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.state import States
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.copied import origin_of
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import called
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes.analysis.memory_chain import MemoryChain
from comet.passes.schedule.fuse.accelerator.borders import needs_axes
from comet.passes.schedule.fuse.accelerator.groups import (
    Segment,
    Unit,
    segments,
    units_of,
)
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import (
    Aliases,
    Leaf,
    Spatial,
    Temporal,
    Tree,
    ops_of,
)


@dataclass(frozen=True)
class NestBuilder:
    """Builds the nests of a function."""

    chain: MemoryChain
    mesh: MeshOp
    states: States
    dissolved: Aliases
    """The results of collectives that node borders replace, with their operands."""
    strategy: Strategy

    def nest(self, units: Sequence[Unit]) -> Temporal:
        """Return the nest of `units`; loops of folds are at the root or inside."""
        root, at_root = self.chain.root, self.strategy.chunks == "root"
        parts = [(segment, self._at_shared(segment)) for segment in segments(units)]
        if not at_root:
            inside = tuple(tree for _, trees in parts for tree in trees)
            return Temporal(root, (self._cluster(units, inside),))
        clusters = [
            (segment.fold, self._cluster(_work(segment), trees))
            for segment, trees in parts
        ]
        children = (
            cluster if fold is None else _loop(root, (cluster,), fold)
            for fold, cluster in clusters
        )
        return Temporal(root, tuple(children))

    def _at_shared(self, segment: Segment) -> tuple[Tree, ...]:
        """
        Return the nodes of a segment over the shared buffer.

        There is one, or, with loops=separate, one for each product outside of folds.
        """
        items = tuple(self._items(segment))
        if segment.fold is not None or self.strategy.loops == "shared":
            return self._looped(items, segment.fold)
        parts = split_at_products(items)
        return tuple(tree for part in parts for tree in self._looped(part))

    def _looped(
        self, items: Sequence[Tree], fold: FoldOp | None = None
    ) -> tuple[Tree, ...]:
        """
        Return the node over the shared buffer with `items`, with collectives around it.

        With `fold` it is the loop of the fold. Collectives before the first node come
        before it: they are of results of an earlier loop. If nothing is fused,
        collectives at the end come after it, so that its loop can complete row
        statistics.
        """
        head = next((i for i, t in enumerate(items) if not isinstance(t, Leaf)), 0)
        tail = len(items)
        unfused = self.strategy.name == "none"
        while unfused and tail > 1 and isinstance(items[tail - 1], Leaf):
            tail -= 1
        inside = fold if self.strategy.chunks == "shared" else None
        loop = _loop(self.chain.shared, tuple(items[head:tail]), inside)
        return (*items[:head], loop, *items[tail:])

    def _cluster(self, units: Sequence[Unit], inside: tuple[Tree, ...]) -> Spatial:
        """Return the spatial node of `units` over clusters, with children `inside`."""
        return self._spread(self.chain.shared, self.chain.cluster_axes, units, inside)

    def _items(self, segment: Segment) -> Iterator[Tree]:
        """
        Yield the nodes over the cores of one segment, and collectives between them.

        A node ends before a contraction, before a collective of the shared level, and
        before an op that reads a value which the border of the node completes. It also
        ends after a contraction and the collective that completes it, but not in the
        step of a fold: the COMET files cannot count a node that has no transfer and
        only computes the next iter_args.
        """
        stage: list[Unit] = []
        for unit in map(self._without_dissolved, _work(segment)):
            if not unit:
                continue
            at_shared = self._is_at_shared(unit)
            if stage and (at_shared or self._ends_before(unit, stage, segment)):
                yield self._stage(stage)
                stage = []
            if at_shared:
                yield Leaf(unit)
            else:
                stage.append(unit)
        if stage:
            yield self._stage(stage)

    def _without_dissolved(self, unit: Unit) -> Unit:
        """Return a unit without collectives that node borders replace."""
        return tuple(op for op in unit if self.dissolved.keys().isdisjoint(op.results))

    def _ends_before(self, unit: Unit, stage: Sequence[Unit], segment: Segment) -> bool:
        results = {result for u in stage for op in u for result in op.results}
        read = {origin_of(value) for op in unit for value in op.operands}
        waits = any(self.dissolved.get(value) in results for value in read)
        after = segment.fold is None and isinstance(stage[0][0], ContractOp)
        completes = isinstance(unit[0], CollectiveOp) and unit[0].operands[0] in results
        return waits or ((isinstance(unit[0], ContractOp) or after) and not completes)

    def _is_at_shared(self, unit: Unit) -> bool:
        op = unit[0]
        inside = set(self.chain.core_axes)
        return isinstance(op, CollectiveOp) and not inside.issuperset(op.axis_names)

    def _stage(self, units: Sequence[Unit]) -> Spatial:
        """Return the spatial node of `units` over the cores of a cluster."""
        out = self.chain.out
        leaves = tuple(
            Leaf(unit)
            if isinstance(unit[0], CollectiveOp)
            else Temporal(out, (Leaf(unit),))
            for unit in units
        )
        return self._spread(out, self.chain.core_axes, units, leaves)

    def _spread(
        self,
        level: str,
        axes: Sequence[str],
        units: Sequence[Unit],
        inside: tuple[Tree, ...],
    ) -> Spatial:
        """
        Return the spatial node of `units` over mesh axes, with children `inside`.

        Each axis has a loop: over the dimension that it shards, or with factor 1 if it
        is idle. An idle axis of one instance has none, as it would split the dimension,
        which a node may reduce. Raises PassFailedException if an axis shards two
        dimensions, or one that another value has whole, and if no value has a dimension
        for a loop.
        """
        ops = tuple(chain.from_iterable(units))
        used = (value for op in ops for value in (*op.operands, *op.results))
        values = [value for value in used if needs_axes(value)]
        idle = next((names_of(v)[0] for v in values if names_of(v)), None)
        if idle is None:
            last = next(last for op in reversed(ops) for last in op.results)
            raise PassFailedException(
                f"fuse: {called(last)} is computed only from numbers, "
                "and the loops of an accelerator's nodes need a dimension; compute it "
                "from a tensor, with a dimension of extent 1 if need be"
            )
        loops: list[LoopAttr] = []
        for axis in axes:
            dim, extent = self._split_dim(axis, values), self.mesh.axis_extents[axis]
            if dim is not None:
                loops.append(LoopAttr(dim, extent, axis))
            elif extent > 1:
                loops.append(LoopAttr(idle, 1, axis))
        return Spatial(level, self.mesh.sym_name.data, tuple(loops), inside)

    def _split_dim(self, axis: str, values: Sequence[SSAValue]) -> str | None:
        """Return the dimension that `axis` shards in all `values`, None if idle."""
        dims = {self.states[v].sharded.get(axis) for v in values} - {None}
        unsharded = {
            dim
            for value in values
            for dim in names_of(value)
            if axis not in self.states[value].sharded
        }
        if len(dims) > 1 or dims & unsharded:
            split = " and ".join(sorted(map(str, dims)))
            raise PassFailedException(
                f"fuse: axis '{axis}' splits {split} in some of the ops that share a "
                "nest; distribute one dimension per axis, in all ops that have it"
            )
        return next(iter(dims), None)


def split_at_products(items: Sequence[Tree]) -> list[tuple[Tree, ...]]:
    """Split nodes and collectives into products, and the items between products."""
    parts: list[tuple[Tree, ...]] = [()]
    for item in items:
        first = None if isinstance(item, Leaf) else next(ops_of(item))
        parts += [(item,), ()] if isinstance(first, ContractOp) else []
        if not isinstance(first, ContractOp):
            parts[-1] += (item,)
    return [part for part in parts if part]


def _work(segment: Segment) -> tuple[Unit, ...]:
    """Return the units of a segment, with those of the step of its fold."""
    if segment.fold is None:
        return segment.units
    return (*segment.units, *units_of(list(segment.fold.step.block.ops)[:-1]))


def _loop(level: str, children: tuple[Tree, ...], fold: FoldOp | None) -> Temporal:
    """Return the temporal node of `children`; with `fold`, it is the fold's loop."""
    if fold is None:
        return Temporal(level, children)
    return Temporal(level, children, fold.dim.data, (fold,), outs=tuple(fold.outs))
