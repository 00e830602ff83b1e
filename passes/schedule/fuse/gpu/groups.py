"""
Splits the ops of one GPU into kernels, with collectives between them, in order.

A collective needs its operand complete and in device memory, so it ends the kernel that
computes it. Ops come as early as possible: with fewer collectives one after another
there are fewer kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    ReduceScatterOp,
)
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    Elementwise,
    FillOp,
    IndexOp,
    MapOp,
    ScatterAddOp,
    View,
)
from comet.dialects.compound.named import CompoundOp
from comet.dialects.errors import OpError
from comet.passes.analysis.op_groups import BlockSizes, defining_ops
from comet.passes.analysis.reduction_loops import without_constants
from comet.passes.schedule.fuse.gpu.scatters import (
    after_their_values,
    meet_in_memory,
    scatters_of,
    units,
    with_scatters,
    without_scatters,
)
from comet.passes.schedule.fuse.instance_ops import read_instance_ops
from comet.passes.schedule.fuse.strategy import Strategy, begins_nest

MOVES = (AllGatherOp, AllToAllOp)
"""Collectives that GPUs execute: they only move data."""

PRODUCTS = (ContractOp, MapOp, CastOp)
"""Ops that kernels may recompute, for each tile that needs them."""

Group: TypeAlias = tuple[Operation, ...]
"""Ops of one kernel, in order; or a single op between kernels, see `Border`."""

Values: TypeAlias = tuple[SSAValue, ...]

Kernel: TypeAlias = tuple[Group, Values]
"""The ops of a kernel, and the values that it stores."""

Border: TypeAlias = View | CollectiveOp
"""An op between kernels: a view of a value in device memory, or a collective."""

Partition: TypeAlias = tuple[Group, ...]
"""
The work of one GPU, in order. An op that several kernels recompute is in each of them.
"""


def is_kernel(group: Group) -> bool:
    """Return whether a group is a kernel, not a view or a collective."""
    return not isinstance(group[0], Border)


def elementary_ops(func: FuncOp) -> tuple[Operation, ...]:
    """
    Return the work of one GPU, in order: ops of kernels, views, collectives.

    Raises PassFailedException for an op of another level, or a collective that GPUs do
    not execute.
    """
    ops = read_instance_ops(func).ops
    for op in ops:
        _check_op(func, op)
    kept = (op for op in without_constants(ops) if not isinstance(op, IndexOp))
    return after_their_values(tuple(kept))


def _check_op(func: FuncOp, op: Operation) -> None:
    if isinstance(op, AllReduceOp | ReduceScatterOp):
        raise OpError(
            op,
            f"fuse: @{func.sym_name.data} has {op.name}, and on GPUs collectives only "
            "move data; run lower-reductions before fuse",
        )
    if isinstance(op, CollectiveOp) and not isinstance(op, MOVES):
        raise OpError(
            op,
            f"fuse: @{func.sym_name.data} has {op.name}, which GPUs do not carry out; "
            "choose shardings that need all_gather, all_to_all and reductions only, "
            "and where a dimension is split, equally many parts for each rank",
        )
    known = isinstance(op, MOVES) or op.dialect_name() == "compound"
    if not known or isinstance(op, CompoundOp):
        raise OpError(
            op,
            f"@{func.sym_name.data} has {op.name}, which is not elementary; run "
            "decompose before fuse",
        )


def in_stages(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """
    Return `ops` sorted by the number of collectives that they depend on.

    Each such stage ends with its collectives; otherwise the order within it stays.
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
        if isinstance(op, ScatterAddOp) and isinstance(op.values.owner, Operation):
            stage |= dict.fromkeys(with_scatters(op.values.owner), stage[op])
    return tuple(sorted(ops, key=lambda op: (stage[op], isinstance(op, MOVES))))


def partition_of(ops: Sequence[Operation], strategy: Strategy) -> Partition:
    """
    Return the kernels of a strategy, with views and collectives between them.

    With `none` every contraction has a kernel, with the cast of its result to a
    narrower type, and so have the ops between two contractions; with other strategies
    one kernel has all ops. A kernel also ends at a view of a computed value, and where
    a dimension changes its extent, or is whole after a shard. With `recompute`, kernels
    recompute products of earlier kernels.
    """
    sizes = BlockSizes(ops)
    groups = tuple(_groups(ops, strategy, sizes))
    if not strategy.recompute:
        return groups
    kernels = list(filter(is_kernel, groups))
    return tuple(
        with_products(group, kernels[: kernels.index(group)], sizes)
        if is_kernel(group)
        else group
        for group in groups
    )


def _groups(
    ops: Sequence[Operation], strategy: Strategy, sizes: BlockSizes
) -> Iterator[Group]:
    name = "isolate_contractions" if strategy.name == "none" else "full"
    group: list[Operation] = []
    for unit in units(in_stages(ops)):
        op = unit[0]
        between = isinstance(op, Border)
        after = bool(group) and isinstance(group[0], ContractOp)
        begins = begins_nest(name, isinstance(op, ContractOp), after)
        begins &= not _narrows_last(op, group)
        separate = sizes.conflict(group, unit) or meet_in_memory(group, unit)
        if group and (between or begins or separate):
            yield tuple(group)
            group = []
        if between:
            yield unit
        else:
            group += unit
    if group:
        yield tuple(group)


def _narrows_last(op: Operation, group: Sequence[Operation]) -> bool:
    """Return whether `op` casts the result of the last op to a narrower type."""
    narrows = isinstance(op, CastOp) and op.added_bits < 0
    return narrows and bool(group) and op.operands[0].owner is group[-1]


def with_own_casts_and_positions(
    partition: Partition, ops: Sequence[Operation]
) -> Partition:
    """
    Return `partition` with each kernel recomputing the casts and positions it reads.

    Casts to wider types are recomputed so that the narrow value goes through device
    memory. Values that depend on positions only, such as the condition of a mask, are
    recomputed so that they are not stored; the ids of a scatter are stored
    nevertheless. `ops` are all ops of the function: of a kernel that was cut in two,
    each half needs some of them again.
    """
    repeated, groups = casts_and_positions(ops), list[Group]()
    for group in partition:
        if is_kernel(group):
            read = defining_ops(values_read(without_scatters(group)), repeated)
            group = (*(op for op in ops if op in read), *group)
        groups.append(group)
    return tuple(groups)


def casts_and_positions(ops: Iterable[Operation]) -> frozenset[Operation]:
    """Return the casts to wider types, and the ops that depend on positions only."""
    positions, casts = set[Operation](), set[Operation]()
    for op in ops:
        if _is_of_positions(op, positions):
            positions.add(op)
        if isinstance(op, CastOp) and op.added_bits > 0:
            casts.add(op)
    return frozenset(positions | casts)


def _is_of_positions(op: Operation, known: AbstractSet[Operation]) -> bool:
    """Whether `op` reads only positions, constants, and results of `known` ops."""
    sources = (value.owner for value in op.operands)
    return isinstance(op, Elementwise) and all(
        source in known
        if isinstance(source, Elementwise)
        else isinstance(source, IndexOp | FillOp)
        for source in sources
    )


def with_products(group: Group, earlier: Sequence[Group], sizes: BlockSizes) -> Group:
    """
    Return `group` with the ops that recompute the products it reads of earlier groups.

    A value is a product if contractions and elementwise ops compute it from values in
    device memory. Results of reductions are loaded instead.
    """
    producers = {op for other in earlier for op in other}
    recomputed: dict[Operation, None] = {}
    for value in dict.fromkeys(value for op in group for value in op.operands):
        ops = defining_ops((value,), producers)
        cheap = all(isinstance(op, PRODUCTS) for op in ops)
        if cheap and not any(sizes.conflict(group, (op,)) for op in ops):
            recomputed |= dict.fromkeys(ops)
    return (*(op for other in earlier for op in other if op in recomputed), *group)


def values_read(group: Group) -> frozenset[SSAValue]:
    """
    Return the values that a group reads and does not compute, constants included.

    The ids of its scatters are among them, even if the group computes the same values
    for other ops: a scatter reads its ids from memory.
    """
    inside, values = set(group), (value for op in group for value in op.operands)
    ids = (op.ids for op in scatters_of(group))
    return frozenset((*ids, *(each for each in values if each.owner not in inside)))


def inputs_of(group: Group) -> tuple[SSAValue, ...]:
    """Return the values that a group reads and does not compute, without constants."""
    inside = set(group)
    values = dict.fromkeys(value for op in group for value in op.operands)
    return tuple(
        value
        for value in values
        if value.owner not in inside and not isinstance(value.owner, FillOp)
    )
