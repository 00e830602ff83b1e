"""
Splits the ops of one GPU into kernels, and puts collectives between them, in order.

A collective needs a finished value in device memory, so it ends the kernel of its
operand. An op that needs no collective's result is as early as possible: fewer
successive collectives make fewer kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    ReduceScatterOp,
    ScatterOp,
)
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import CastOp, ContractOp, FillOp, IndexOp, MapOp, View
from comet.dialects.compound.named import CompoundOp
from comet.passes.analysis.op_groups import defining_ops, disagrees
from comet.passes.analysis.reduction_loops import without_constants
from comet.passes.schedule.fuse.program import read_program
from comet.passes.schedule.fuse.strategy import Strategy, begins_nest

MOVES = (AllGatherOp, AllToAllOp)
"""Collectives that GPUs execute: they only move data."""

PRODUCTS = (ContractOp, MapOp, CastOp)
"""Ops that can be recomputed for each tile."""

Group: TypeAlias = tuple[Operation, ...]
"""Ops of one kernel, in order."""

Part: TypeAlias = Group | View | CollectiveOp
"""The ops of a kernel; or a view of a value in device memory, or a collective."""

Partition: TypeAlias = tuple[Part, ...]
"""
The work of one GPU in order. Ops that several kernels recompute are in each of them.
"""


def elementary_ops(func: FuncOp) -> tuple[Operation, ...]:
    """
    Return the work of one GPU, in order: ops of kernels, views, collectives.

    Raises PassFailedException for an op of another level, or a collective that GPUs do
    not execute.
    """
    ops = read_program(func).ops
    for op in ops:
        _check_op(func, op)
    return tuple(op for op in without_constants(ops) if not isinstance(op, IndexOp))


def _scatter_mistake(func: FuncOp, op: ScatterOp) -> str:
    """Say which op needs a sharding, so that no value has to be scattered."""
    name, dim = op.input.name_hint or "the value", op.dim.data
    axes = ", ".join(f'"{axis}"' for axis in op.axis_names)
    shard = f"{{collective.shard = {{{dim} = [{axes}]}}}}"
    return (
        f"fuse: @{func.sym_name.data} has {op.name}, which GPUs do not carry out: "
        f"every rank computes all of %{name} and keeps its shard in {dim}; say on the "
        f"op that makes it that {dim} is split over ranks, as in %y = compound.gemm "
        f"%a, %b {shard}, and where a dimension is split, take equally many parts for "
        "each rank"
    )


def _check_op(func: FuncOp, op: Operation) -> None:
    if isinstance(op, AllReduceOp | ReduceScatterOp):
        raise PassFailedException(
            f"fuse: @{func.sym_name.data} has {op.name}, and on GPUs collectives only "
            "move data; run lower-reductions before fuse"
        )
    if isinstance(op, ScatterOp):
        raise PassFailedException(_scatter_mistake(func, op))
    if isinstance(op, CollectiveOp) and not isinstance(op, MOVES):
        raise PassFailedException(
            f"fuse: @{func.sym_name.data} has {op.name}, which GPUs do not carry out; "
            "choose shardings that need all_gather, all_to_all and reductions only, "
            "and where a dimension is split, equally many parts for each rank"
        )
    known = isinstance(op, MOVES) or op.dialect_name() == "compound"
    if not known or isinstance(op, CompoundOp):
        raise PassFailedException(
            f"@{func.sym_name.data} has {op.name}, which is not elementary; run "
            "decompose before fuse"
        )


def in_stages(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """
    Return `ops` by the number of collectives before them.

    Each stage ends with its collectives; within a stage the order stays.
    """
    stage: dict[Operation, int] = {}
    for op in ops:
        sources = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        earlier = [
            stage[source] + isinstance(source, MOVES)
            for source in sources
            if source in stage
        ]
        stage[op] = max(earlier, default=0)
    return tuple(sorted(ops, key=lambda op: (stage[op], isinstance(op, MOVES))))


def partition_of(ops: Sequence[Operation], strategy: Strategy) -> Partition:
    """
    Return the groups of ops of kernels, with views and collectives between.

    With `none` every contraction has its own kernel, with a cast to a narrower type if
    there is one, and so have the ops between two of them; otherwise one kernel has all.
    A kernel also ends at a view of a computed value, and at a dimension of which one op
    has a shard and another the whole. With `again`, kernels recompute the products of
    earlier ones.
    """
    parts = tuple(_parts(ops, strategy))
    if not strategy.again:
        return parts
    groups = [part for part in parts if isinstance(part, tuple)]
    return tuple(
        with_products(part, groups[: groups.index(part)])
        if isinstance(part, tuple)
        else part
        for part in parts
    )


def _parts(ops: Sequence[Operation], strategy: Strategy) -> Iterator[Part]:
    name = "isolate_contractions" if strategy.name == "none" else "full"
    group: list[Operation] = []
    for op in in_stages(ops):
        between = isinstance(op, View | CollectiveOp)
        after = bool(group) and isinstance(group[0], ContractOp)
        begins = begins_nest(name, isinstance(op, ContractOp), after)
        begins &= not _narrows_last(op, group)
        if group and (between or begins or disagrees(group, (op,))):
            yield tuple(group)
            group = []
        if isinstance(op, View | CollectiveOp):
            yield op
        else:
            group.append(op)
    if group:
        yield tuple(group)


def _narrows_last(op: Operation, group: Sequence[Operation]) -> bool:
    """Return whether `op` casts the last value of `group` to a narrower type."""
    narrows = isinstance(op, CastOp) and op.added_bits < 0
    return narrows and bool(group) and op.operands[0].owner is group[-1]


def with_own_casts_and_positions(partition: Partition) -> Partition:
    """
    Return `partition` with casts to wider types in each kernel that reads the result.

    So the narrow value is what goes through device memory. What is computed from
    positions alone, such as the condition of a mask, does not at all.
    """
    groups = [part for part in partition if isinstance(part, tuple)]
    ops = tuple(dict.fromkeys(op for group in groups for op in group))
    own, parts = casts_and_positions(ops), list[Part]()
    for part in partition:
        if isinstance(part, tuple):
            read = defining_ops(values_read(part), own)
            parts.append((*(op for op in ops if op in read), *part))
        else:
            parts.append(part)
    return tuple(parts)


def casts_and_positions(ops: Iterable[Operation]) -> frozenset[Operation]:
    """Return the casts to wider types, and what is computed from positions alone."""
    positions, casts = set[Operation](), set[Operation]()
    for op in ops:
        if _is_of_positions(op, positions):
            positions.add(op)
        if isinstance(op, CastOp) and op.added_bits > 0:
            casts.add(op)
    return frozenset(positions | casts)


def _is_of_positions(op: Operation, known: AbstractSet[Operation]) -> bool:
    """Whether `op` computes from positions and constants, or from ops that do."""
    sources = (value.owner for value in op.operands)
    return isinstance(op, MapOp | CastOp) and all(
        source in known
        if isinstance(source, MapOp | CastOp)
        else isinstance(source, IndexOp | FillOp)
        for source in sources
    )


def with_products(group: Group, earlier: Sequence[Group]) -> Group:
    """
    Return `group` with the products that it reads of earlier groups, recomputed.

    A product is computed by contractions and elementwise ops from values in device
    memory. Results of reductions are read from there.
    """
    made = {op for other in earlier for op in other}
    again: dict[Operation, None] = {}
    for value in dict.fromkeys(value for op in group for value in op.operands):
        ops = defining_ops((value,), made)
        cheap = all(isinstance(op, PRODUCTS) for op in ops)
        if cheap and not any(disagrees(group, (op,)) for op in ops):
            again |= dict.fromkeys(ops)
    return (*(op for other in earlier for op in other if op in again), *group)


def values_read(part: Part) -> frozenset[SSAValue]:
    """Return what a part reads from device memory, constants included."""
    if isinstance(part, Operation):
        return frozenset(part.operands)
    inside = set(part)
    values = (value for op in part for value in op.operands)
    return frozenset(value for value in values if value.owner not in inside)
