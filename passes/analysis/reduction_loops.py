"""
Reduction loops: how often a loop over one dimension must run to compute a list of ops.

An op that has the dimension runs inside a loop over it. A reduction over the dimension
is complete only after its loop, so ops that need its result in every tile run in a
later loop; ops without the dimension are between the loops. Pure functions on
elementary ops (`compound`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.compound import (
    ContractOp,
    Elementwise,
    ExtentOp,
    FillOp,
    FoldOp,
    ReduceOp,
)
from comet.dialects.compound.dims import iteration_dims, names_of
from comet.dialects.schedule.accumulators import (
    accumulates,
    is_addition,
    only_added,
)
from comet.dialects.schedule.attributes import Combiner
from comet.digraph import reachable


def reduced_dims(op: Operation) -> tuple[str, ...]:
    """Return the dimensions that the operands of an op have, but not its results."""
    if isinstance(op, Elementwise):
        return ()
    if isinstance(op, ExtentOp):
        return (op.dim.data,)
    result_dims = {name for value in op.results for name in names_of(value)}
    return tuple(name for name in iteration_dims(op) if name not in result_dims)


def combiner_of(op: Operation) -> Combiner:
    """Return how the partial results of a reducing op become one value."""
    if isinstance(op, FoldOp):
        return Combiner.FOLD
    if isinstance(op, ReduceOp):
        return Combiner(str(op.kind.data))
    assert isinstance(op, ContractOp | ExtentOp)
    return Combiner.ADD


def looped_dims(ops: Sequence[Operation]) -> tuple[str, ...]:
    """
    Return the reduced dimensions in the order in which loops over them nest.

    The dimension that is reduced last is the outermost: the loop over K that computes a
    tile of a product is inside the loop over N that reduces the product. A loop that
    splits the iter_args of a fold is outside the fold's loop: each tile has its own
    iter_args.
    """
    last = {dim: index for index, op in enumerate(ops) for dim in reduced_dims(op)}
    order = sorted(last, key=last.__getitem__, reverse=True)
    for op in ops:
        if isinstance(op, FoldOp) and (dim := op.dim.data) in order:
            inside = order[order.index(dim) + 1 :]
            cut = {name for value in op.outs for name in names_of(value)}
            moved = [name for name in inside if name in cut]
            outside = [name for name in order if name not in inside and name != dim]
            rest = [name for name in inside if name not in cut]
            order = [*outside, *moved, dim, *rest]
    return tuple(order)


def nested_loops(
    ops: Sequence[Operation],
    dims: Sequence[str],
    extents: Mapping[str, int],
    partial: Collection[str] = (),
) -> tuple[str, ...]:
    """
    Return those of `dims` that can be loops of one nest, outermost first.

    A loop that reduces a value is inside the loops over the dimensions of the result:
    sums are in registers, which cannot be sliced. Otherwise the order stays. If
    dimensions need to be inside each other, one of them gets no loop: its tile is the
    whole extent. If possible it is one that is not `partial` (one of which each rank
    folds a shard), then one without a fold, then one that no product batches,
    and of these the one with the smallest extent.
    """
    folds = {op.dim.data for op in ops if isinstance(op, FoldOp)}
    batched = {dim for op in ops if isinstance(op, ContractOp) for dim in op.batched}
    outer = {dim: set[str]() for dim in dims}
    for op in ops:
        for dim in outer.keys() & reduced_dims(op):
            results = {name for value in op.results for name in names_of(value)}
            outer[dim] |= results.intersection(dims)
    remaining, nest = list(dims), list[str]()
    while remaining:
        free = [dim for dim in remaining if not outer[dim] & set(remaining)]
        if free:
            nest.append(free[0])
            remaining.remove(free[0])
            continue
        blocking = set[str]().union(*(outer[dim] for dim in remaining))
        cyclic = [dim for dim in remaining if dim in blocking]
        remaining.remove(
            min(
                cyclic,
                key=lambda dim: (
                    *(dim in group for group in (partial, folds, batched)),
                    extents[dim],
                ),
            )
        )
    return tuple(nest)


@dataclass(frozen=True)
class ReductionLoop:
    """One loop over the dimension."""

    ops: tuple[Operation, ...]
    """
    The ops of its body, in order; ops of an earlier reduction loop are recomputed.
    """
    outputs: tuple[SSAValue, ...]
    """Yielded values: reductions, and tiles that are used outside or later."""


@dataclass(frozen=True)
class ReductionLoopPlan:
    """The reduction loops over one dimension, and the ops between them."""

    dim: str
    reduction_loops: tuple[ReductionLoop, ...]
    between: tuple[tuple[Operation, ...], ...]
    """Ops without the dimension: `between[i]` before loop i, the last after all."""


@dataclass(frozen=True)
class _Phases:
    """The phase of each op: the number of reduction loops that come before it."""

    dim: str
    inside: AbstractSet[Operation]
    """The ops that have the dimension."""
    of: dict[Operation | Block, int]
    added: AbstractSet[SSAValue] = frozenset()
    """The products that a sum in the same loop adds up."""

    @property
    def loops(self) -> int:
        """The number of reduction loops."""
        return max((self.of[op] + 1 for op in self.inside), default=0)

    def ready(self, value: SSAValue) -> int:
        """Return the number of reduction loops before `value` can be read."""
        if (phase := self.of.get(op := value.owner)) is None:
            return 0
        return phase + (op in self.inside and self.dim not in names_of(value))

    def is_complete_after_loop(self, value: SSAValue) -> bool:
        """Return whether a loop reduces `value`, and nothing in it reads the result."""
        return self.dim not in names_of(value) and value not in self.added

    def producer_in_loop(self, value: SSAValue) -> Operation | None:
        """Return the op that computes `value` tile by tile in a loop, None if none."""
        op = value.owner
        if not isinstance(op, Operation) or op not in self.of:
            return None
        inside = self.dim in names_of(value) or value in self.added
        return op if inside else None


def _phases(ops: Sequence[Operation], *dims: str) -> Iterator[_Phases]:
    """Yield the phases of ops, for each of some dimensions."""
    inside = {dim: set[Operation]() for dim in dims}
    for op in ops:
        # The result of an elementwise op has all dimensions of its operands.
        elementwise = isinstance(op, Elementwise)
        names = names_of(op.result) if elementwise else iteration_dims(op)
        for dim in inside.keys() & names:
            inside[dim].add(op)
    for dim, having in inside.items():
        phases = _Phases(dim, having, {})
        for op in ops:
            ready = [phases.ready(value) for value in op.operands]
            phases.of[op] = max(ready, default=0)
        yield phases


def reduction_loop_counts(ops: Sequence[Operation]) -> dict[str, int]:
    """Return how many loops over each reduced dimension ops need, see `looped_dims`."""
    dims = looped_dims(ops)
    found = (phases.loops for phases in _phases(ops, *dims))
    return dict(zip(dims, found, strict=True))


def crossing_values(ops: Sequence[Operation], dim: str) -> tuple[SSAValue, ...]:
    """Return the values whose tiles a later reduction loop reads again, in order."""
    (phases,) = _phases(ops, dim)
    crossing: dict[SSAValue, None] = {}
    for op in ops:
        for value in op.operands:
            producer = phases.producer_in_loop(value)
            if producer is not None and phases.of[producer] < phases.of[op]:
                crossing[value] = None
    return tuple(crossing)


def _with_sums(
    ops: Sequence[Operation], phases: _Phases, stored: Collection[SSAValue]
) -> _Phases:
    """
    Move the sums of products that one loop computes into this loop.

    It adds up the sum instead of each product: one accumulator does for all of them.
    Products that are `stored`, have other uses or fewer dimensions stay apart.
    """
    sums, added, of = set[Operation](), set[SSAValue](), dict(phases.of)

    def is_term(value: SSAValue) -> bool:
        op = value.owner
        product = isinstance(op, ContractOp) and op in phases.inside
        completed = phases.dim not in names_of(value) and value not in stored
        return (product or op in sums) and completed and only_added(value) is not None

    for op in filter(is_addition, ops):
        if not accumulates(op.result) or not all(map(is_term, op.operands)):
            continue
        places = {of[value.owner] for value in op.operands}
        if len(places) == 1:
            sums.add(op)
            added.update(op.operands)
            of[op] = places.pop()
    return replace(phases, inside=phases.inside | sums, of=of, added=added)


def plan_reduction_loops(
    ops: Sequence[Operation],
    dim: str,
    wanted: Collection[SSAValue],
    spilled: Collection[SSAValue] = (),
) -> ReductionLoopPlan:
    """
    Plan the reduction loops over `dim` that compute `wanted`.

    `ops` are in order, without constants. A tile that a later loop needs is recomputed
    there, unless it is one of `spilled`, which the first loop yields.
    """
    (phases,) = _phases(ops, dim)
    phases = _with_sums(ops, phases, {*wanted, *spilled})
    outputs = _outputs(ops, phases, wanted, spilled)
    reduction_loops = tuple(
        ReductionLoop(
            _body(ops, phases, index, outputs[index], spilled), outputs[index]
        )
        for index in range(phases.loops)
    )
    between = tuple(
        tuple(op for op in ops if op not in phases.inside and phases.of[op] == index)
        for index in range(phases.loops + 1)
    )
    return ReductionLoopPlan(dim, reduction_loops, between)


def _outputs(
    ops: Sequence[Operation],
    phases: _Phases,
    wanted: Collection[SSAValue],
    spilled: Collection[SSAValue],
) -> dict[int, tuple[SSAValue, ...]]:
    """Return the values that each reduction loop yields, reductions first."""
    used = {value for op in ops for value in op.operands}
    outputs: dict[int, tuple[SSAValue, ...]] = {}
    for op in ops:
        if op not in phases.inside:
            continue
        yielded = tuple(
            value
            for value in op.results
            if value in wanted
            or value in spilled
            or (value in used and phases.is_complete_after_loop(value))
        )
        if yielded and isinstance(op, FoldOp):
            yielded = tuple(op.outs)
        outputs[phases.of[op]] = (*outputs.get(phases.of[op], ()), *yielded)
    return {
        index: tuple(sorted(values, key=lambda v: phases.dim in names_of(v)))
        for index, values in outputs.items()
    }


def _body(
    ops: Sequence[Operation],
    phases: _Phases,
    index: int,
    outputs: Sequence[SSAValue],
    spilled: Collection[SSAValue],
) -> tuple[Operation, ...]:
    """Return the ops of reduction loop `index`, in order."""

    def producers(op: Operation | Block) -> Iterator[Operation]:
        for value in op.operands if isinstance(op, Operation) else ():
            producer = phases.producer_in_loop(value)
            if producer is not None:
                is_loaded = value in spilled and phases.of[producer] < index
                if not is_loaded:
                    yield producer

    needed = frozenset(reachable((value.owner for value in outputs), producers))
    return tuple(op for op in ops if op in needed)


def without_constants(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return `ops` without constants, which are copied to every use."""
    return tuple(op for op in ops if not isinstance(op, FillOp))
