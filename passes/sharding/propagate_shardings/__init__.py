"""
`propagate-shardings`: elementary level -> elementary level, with a sharding on each op.

A function states the shardings of its arguments, and may state those of its results
(`{}`: whole on every instance); a result without one keeps the sharding in which it is
computed. This pass derives the shardings of the ops between them. They are propagated
forward, from operands to results; ops that depend on whole arguments only get the
sharding that their readers need. If several are possible, the ones that split the work
over the most instances are preferred, and of these the one for which an instance
receives the fewest bytes. A summed dimension is split if all operands that have it are
split in it. Ops with a sharding keep it; a function without any stays as it is.

For example, the MLP of a sequence-parallel block has sharded tokens before and after
it, and weights with sharded columns. Its tokens are gathered before the first products,
and the result of the last product is reduce-scattered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding, sharding_attr
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.sharding.boundary import check_boundary, says_sharding
from comet.passes.sharding.dim_axes import ShardedDim
from comet.passes.sharding.propagate_shardings.known import (
    Known,
    Shardings,
    operands_of,
)
from comet.passes.sharding.shardings import (
    SHARD,
    follows_readers,
    mesh_of,
    shardable_dims,
    sharding_of_op,
)


@dataclass(frozen=True)
class PropagateShardingsPass(FunctionPass):
    """Annotate the ops between sharded arguments and results."""

    name = "propagate-shardings"

    LEVELS = (IRLevel.ELEMENTARY,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if says_sharding(function):
            mesh = mesh_of(function, module, self.name)
            for target, sharding in plan_shardings(function, mesh).items():
                target.attributes[SHARD] = sharding_attr(sharding)


def plan_shardings(func: FuncOp, mesh: MeshOp) -> Shardings:
    """
    Return the sharding of each op of a function that has none, in order.

    Raises PassFailedException if one of the signature does not fit.
    """
    check_boundary(func, mesh, PropagateShardingsPass.name)
    stated = stated_shardings(func, mesh)
    found = propagated(stated).ops.items()
    return {op: sharding for op, sharding in found if op not in stated.ops}


def stated_shardings(func: FuncOp, mesh: MeshOp) -> Known:
    """Return the shardings that a function states by `collective.shard` on its ops."""
    ops = filter(_computes, func.body.block.ops)
    annotated = {op: sharding_of_op(op) for op in ops if SHARD in op.attributes}
    return Known(func, mesh, annotated)


def propagated(known: Known) -> Known:
    """Return the same with a sharding of each op; those that nothing splits are {}."""
    ops = list(filter(_computes, known.func.body.block.ops))
    remaining = [op for op in ops if op not in known.ops]
    while found := _from_operands(known, remaining) or _from_readers(known, remaining):
        known = known.with_ops(found)
        remaining = [op for op in remaining if op not in found]
    return replace(known, ops={op: known.ops.get(op, {}) for op in ops})


def _computes(op: Operation) -> bool:
    """Return whether an op has a sharding of its own."""
    return not (isinstance(op, ReturnOp) or follows_readers(op))


def _from_operands(known: Known, ops: Sequence[Operation]) -> Shardings:
    """Return the shardings of `ops`, in order, that follow from their operands."""
    found: Shardings = {}
    for op in ops:
        splits = (*_splits_of_operands(known, op), *_splits_of_readers(known, op))
        if (best := _cheapest(known, op, splits)) is not None:
            found[op] = best
            known = known.with_ops({op: best})
    return found


def _from_readers(known: Known, ops: Sequence[Operation]) -> Shardings:
    """Return the sharding of the last of `ops` that readers need in shards, if any."""
    for op in reversed(ops):
        best = _cheapest(known, op, tuple(_splits_of_readers(known, op)))
        if best is not None:
            return {op: best}
    return {}


def _splits_of_operands(known: Known, op: Operation) -> Iterator[ShardedDim]:
    """Yield the dimensions that are split in operands, and that `op` may split."""
    operands = operands_of(op)
    result_dims = {dim for result in op.results for dim in names_of(result)}
    for operand in operands:
        for dim, axes in known.sharding(operand).items():
            others = (v for v in operands if dim in names_of(v))
            if dim in result_dims or all(known.may_have(v, dim, axes) for v in others):
                yield dim, axes


def _splits_of_readers(known: Known, op: Operation) -> Iterator[ShardedDim]:
    """Yield the dimensions in which known readers need the results of `op` split."""
    for result in op.results:
        for wanted in known.wanted(result):
            yield from wanted.items()


def _cheapest(
    known: Known, op: Operation, splits: Sequence[ShardedDim]
) -> Sharding | None:
    """
    Return the best sharding of `op` by some of `splits`.

    None if `op` can have none of them, or if each would scatter a whole value.
    """
    dims = shardable_dims(op)
    possible = dict.fromkeys(split for split in splits if split[0] in dims)
    if not possible:
        return None
    sets = chain.from_iterable(
        combinations(possible, n) for n in range(len(possible), -1, -1)
    )
    candidates = [dict(chosen) for chosen in sets if _is_sharding(chosen)]
    moved = ((sharding, known.received(op, sharding)) for sharding in candidates)
    able = ((sharding, size) for sharding, size in moved if size is not None)

    def rank(candidate: tuple[Sharding, float]) -> tuple[int, float]:
        sharding, size = candidate
        return -known.mesh.size(_axes(list(sharding.items()))), size

    best = min(able, key=rank, default=None)
    return None if best is None else best[0]


def _is_sharding(splits: Sequence[ShardedDim]) -> bool:
    """Return whether dimensions and axes of `splits` are distinct."""
    dims, axes = [dim for dim, _ in splits], _axes(splits)
    return len({*dims}) == len(dims) and len({*axes}) == len(axes)


def _axes(splits: Sequence[ShardedDim]) -> list[str]:
    return [axis for _, axes in splits for axis in axes]
