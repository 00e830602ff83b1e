"""Plans the kernels of one GPU for a function: their grids and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.collective import AllGatherOp
from comet.dialects.compound import (
    CastOp,
    ConcatOp,
    ContractOp,
    FillOp,
    FoldOp,
    GatherOp,
    IndexOp,
    SliceOp,
)
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.dependence import backward_slice_dims
from comet.passes.analysis.levels import compute_block
from comet.passes.analysis.op_groups import defining_ops, extents_of_op
from comet.passes.analysis.reduction_loops import (
    crossing_values,
    nested_loops,
    reduced_dims,
    reduction_loop_counts,
)
from comet.passes.schedule.fuse.gpu.groups import (
    Group,
    Partition,
    is_kernel,
    values_read,
    with_own_casts_and_positions,
)
from comet.passes.schedule.fuse.gpu.kernel_tree import KernelLevels, kernel_tree
from comet.passes.schedule.fuse.gpu.scatters import (
    computed,
    scatters_of,
    without_scatters,
)
from comet.passes.schedule.fuse.rewrite import FusionPlan
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Leaf, Spatial, chunks_of

Step: TypeAlias = Spatial | Leaf
"""A kernel; or a leaf with a view of a value in device memory, or a collective."""


IN_PLACE = SliceOp | ConcatOp | GatherOp
"""Views whose constant operands are computed by the kernel that reads the view."""

PlanKernel: TypeAlias = Callable[[Group, tuple[SSAValue, ...]], Spatial]
"""Plans the kernel that computes values by ops."""


class LoopNest(NamedTuple):
    """The loops of a program of a kernel."""

    loops: tuple[str, ...]
    """Their dimensions, outermost first."""
    spilled: frozenset[SSAValue]
    """The tiles that one of them stores for a later one."""
    counts: tuple[int, ...]
    """How many loops over each of the dimensions follow each other."""


def plan_steps(
    func: FuncOp, partition: Partition, plan: PlanKernel
) -> tuple[Step, ...]:
    """Plan the work of one GPU for `func`, in order."""
    *body, terminator = compute_block(func).ops
    partition = with_own_casts_and_positions(partition, body)
    reads = {value for group in partition for value in values_read(group)}
    kept = reads.union(terminator.operands)
    borders = (group[0] for group in partition if not is_kernel(group))
    readers = (op for op in borders if not isinstance(op, IN_PLACE))
    steps: list[Step] = _constants((*readers, terminator))
    stored: set[SSAValue] = set()
    for group in partition:
        if not is_kernel(group):
            steps.append(Leaf(group))
            continue
        results = (result for op in group for result in op.results)
        if outs := tuple(v for v in results if v in kept and v not in stored):
            needed = defining_ops(computed(outs), set(group))
            needed = needed.union(scatters_of(group))
            ops = tuple(op for op in group if op in needed)
            steps.append(plan(ops, outs))
            steps.extend(Leaf((op,)) for op in scatters_of(ops))
            stored.update(outs)
    return tuple(steps)


def plan_kernels(func: FuncOp, steps: Sequence[Step], levels: GpuLevels) -> FusionPlan:
    """Return the fusion plan that replaces the ops of one GPU in `func` by `steps`."""
    block = compute_block(func)
    *ops, terminator = block.ops
    positions = Leaf(tuple(op for op in ops if isinstance(op, IndexOp)))
    return FusionPlan(
        block,
        (positions, *steps),
        tuple(terminator.operands),
        KernelLevels(levels),
        chunks_of(ops),
    )


def _constants(readers: Iterable[Operation]) -> list[Step]:
    """
    Return kernels for the constants that `readers` read from device memory.

    They have one program: a grid splits the inputs of a kernel, and these have none.
    """
    values = dict.fromkeys(value for op in readers for value in op.operands)
    return [
        kernel_tree((value.owner,), (value,), grid=(), loops=())
        for value in values
        if isinstance(value.owner, FillOp)
    ]


def plan_kernel(strategy: Strategy, ops: Group, outs: tuple[SSAValue, ...]) -> Spatial:
    """
    Return the kernel that computes `outs` by `ops`, with its grid and its loops.

    Each reduced dimension has a loop, except one that needs several reduction loops if
    the strategy keeps `full_rows`, and one that cannot nest with the other loops. A
    fold over a dimension of which each rank has a shard always has a loop, whose
    combiner shows that the result is partial.
    """
    (kernel,) = plan_forms((strategy,), ops, outs)
    return kernel


def plan_forms(
    strategies: Iterable[Strategy], ops: Group, outs: tuple[SSAValue, ...]
) -> tuple[Spatial, ...]:
    """Return the kernels of strategies, each once, see `plan_kernel`."""
    nests = loop_nests(strategies, ops)
    return tuple(plan_form(nest, ops, outs) for nest in nests)


def plan_form(nest: LoopNest, ops: Group, outs: tuple[SSAValue, ...]) -> Spatial:
    """Return the kernel that computes `outs` by `ops`, with the loops of `nest`."""
    outs = computed(outs)
    ops = without_scatters(ops)
    return kernel_tree(ops, outs, grid_dims(ops, outs), nest.loops, nest.spilled)


def loop_nests(strategies: Iterable[Strategy], ops: Group) -> tuple[LoopNest, ...]:
    """Return the loops of a kernel that computes `ops` by strategies, each once."""
    return tuple(dict.fromkeys(_loop_nests(strategies, without_scatters(ops))))


def _loop_nests(strategies: Iterable[Strategy], ops: Group) -> Iterator[LoopNest]:
    """Yield the loops for each strategy, and the tiles that they spill."""
    partial = {op.dim.data for op in ops if isinstance(op, FoldOp) and _is_partial(op)}
    extents = {dim: n for op in ops for dim, n in extents_of_op(op).items()}
    counts = reduction_loop_counts(ops)

    @cache
    def nested(dims: tuple[str, ...]) -> tuple[str, ...]:
        return nested_loops(ops, dims, extents, partial)

    for strategy in strategies:
        loops = nested(
            tuple(
                dim
                for dim, count in counts.items()
                if not strategy.full_rows or dim in partial or count == 1
            )
        )
        several = [dim for dim in loops if strategy.spill and counts[dim] > 1]
        kept = (value for dim in several for value in costly_crossings(ops, dim))
        yield LoopNest(loops, frozenset(kept), tuple(counts[dim] for dim in loops))


def _is_partial(fold: FoldOp) -> bool:
    """Return whether a fold gives partial results, which an all-gather collects."""
    uses = (use.operation for result in fold.outs for use in result.uses)
    return any(isinstance(user, AllGatherOp) for user in uses)


def grid_dims(ops: Sequence[Operation], outs: Sequence[SSAValue]) -> tuple[str, ...]:
    """
    Return the dimensions that programs split.

    Every result has them, except numbers, which each program computes whole; and no op
    reduces them.
    """
    return grid_over(outs, {dim for op in ops for dim in reduced_dims(op)})


def grid_over(outs: Sequence[SSAValue], reduced: set[str]) -> tuple[str, ...]:
    """Return the dimensions that programs split, for ops that reduce some."""
    tiled = [out for out in outs if names_of(out)] or list(outs)
    numbers = [out for out in outs if not names_of(out)]
    fixed = reduced.union(*(backward_slice_dims(number) for number in numbers))
    return tuple(
        dim
        for dim in names_of(tiled[0])
        if dim not in fixed and all(dim in names_of(out) for out in tiled)
    )


def costly_crossings(ops: Sequence[Operation], dim: str) -> tuple[SSAValue, ...]:
    """
    Return the tiles that a reduction loop over `dim` should spill for a later loop.

    These are the tiles that a contraction is needed to recompute, each before a cast to
    a wider type. A tile that elementwise ops recompute from a spilled one is left out.
    """
    kept: list[SSAValue] = []
    for crossing in crossing_values(ops, dim):
        value = _before_widening(crossing)
        needed = defining_ops((value,), set(ops), kept)
        if any(isinstance(op, ContractOp) for op in needed):
            kept.append(value)
    return tuple(kept)


def _before_widening(value: SSAValue) -> SSAValue:
    """Return the operand if `value` is a cast to a wider type, else `value`."""
    match value.owner:
        case CastOp() as cast if cast.added_bits > 0:
            return cast.input
        case _:
            return value
