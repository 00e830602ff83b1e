"""
Fusion on GPUs: which ops share a kernel, as a plan, and its rewrite.

`none` gives every contraction a kernel of its own and what stands between two of them
another; `partial` makes one kernel that sweeps over a row several times, tile by tile;
`full` makes one kernel that holds a whole row; `auto` takes the cheapest of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.collective_spmd import SpmdOp
from comet.dialects.compound import ContractOp, FillOp, RenameOp
from comet.dialects.compound_dims import names_of, with_level
from comet.dialects.compound_named import CompoundOp
from comet.passes.fuse_gpu_build import KernelPlan, build_kernel
from comet.passes.gpu_levels import GpuLevels, gpu_levels
from comet.passes.sweeps import (
    crossing_values,
    looped_dims,
    producers,
    reduced_dims,
    sweep_count,
    without_constants,
)

Strategy: TypeAlias = Literal["none", "partial", "full", "auto"]
Between: TypeAlias = Literal["recompute", "spill", "auto"]


@dataclass(frozen=True)
class FunctionPlan:
    """The kernels of a function, in order of launch, and its views of inputs."""

    kernels: tuple[KernelPlan, ...]
    renames: tuple[RenameOp, ...] = ()
    """Views of inputs or of kernel results under other dimension names."""


def elementary_ops(func: FuncOp) -> tuple[Operation, ...]:
    """
    Return the ops of a function that kernels compute, in order.

    Raises PassFailedException for an op of another level.
    """
    ops = tuple(func.body.block.ops)[:-1]
    for op in ops:
        if isinstance(op, SpmdOp):
            raise PassFailedException(
                f"@{func.sym_name.data} has a {op.name} region, which fuse cannot give "
                "kernels on a GPU yet; compile with ranks=1"
            )
        if op.dialect_name() != "compound" or isinstance(op, CompoundOp):
            raise PassFailedException(
                f"@{func.sym_name.data} has {op.name}, which is not elementary; run "
                "decompose before fuse"
            )
    return without_constants(ops)


def plan_function(
    func: FuncOp, strategy: Literal["none", "partial", "full"], between: Between
) -> FunctionPlan:
    """Plan the kernels of a function; `auto` between sweeps keeps nothing yet."""
    ops = elementary_ops(func)
    renames = tuple(op for op in ops if isinstance(op, RenameOp))
    kernels: list[KernelPlan] = []
    for group in _groups(ops, strategy):
        outs = _used_outside(group)
        if outs:
            kernels.append(_plan_kernel(group, outs, strategy))
    plans = (replace(k, spilled=_spills(k, between)) for k in kernels)
    return FunctionPlan(tuple(plans), renames)


def _groups(
    ops: Sequence[Operation], strategy: Literal["none", "partial", "full"]
) -> Iterator[tuple[Operation, ...]]:
    """Part the ops into kernels; a view of a computed value parts them too."""
    group: list[Operation] = []
    for op in ops:
        alone = strategy == "none" and isinstance(op, ContractOp)
        if alone or isinstance(op, RenameOp):
            yield tuple(group)
            group = []
        if not isinstance(op, RenameOp):
            group.append(op)
        if alone:
            yield tuple(group)
            group = []
    yield tuple(group)


def _used_outside(group: Sequence[Operation]) -> tuple[SSAValue, ...]:
    """Return the results that ops outside the group use, in order."""
    inside = set(group)
    return tuple(
        result
        for op in group
        for result in op.results
        if any(_outermost(use.operation, op) not in inside for use in result.uses)
    )


def _outermost(user: Operation, sibling: Operation) -> Operation:
    """Return the op around `user` that stands in the block of `sibling`."""
    while user.parent is not sibling.parent:
        above = user.parent_op()
        assert above is not None
        user = above
    return user


def _plan_kernel(
    ops: tuple[Operation, ...],
    outs: tuple[SSAValue, ...],
    strategy: Literal["none", "partial", "full"],
) -> KernelPlan:
    """
    Choose the grid and the loops of one kernel.

    Programs split the dimensions that every result has and nothing reduces. A reduced
    dimension is looped over, unless `full` keeps it whole for several sweeps.
    """
    reduced = {dim for op in ops for dim in reduced_dims(op)}
    grid = tuple(
        dim
        for dim in names_of(outs[0])
        if dim not in reduced and all(dim in names_of(out) for out in outs)
    )
    loops = tuple(
        dim
        for dim in looped_dims(ops)
        if strategy != "full" or sweep_count(ops, dim) == 1
    )
    return KernelPlan(ops, outs, grid, loops)


def _spills(plan: KernelPlan, between: Between) -> frozenset[SSAValue]:
    """Return the tiles that go through device memory between two sweeps."""
    if between != "spill":
        return frozenset()
    return frozenset(v for dim in plan.loops for v in costly_crossings(plan, dim))


def costly_crossings(plan: KernelPlan, dim: str) -> tuple[SSAValue, ...]:
    """
    Return the tiles that are worth keeping from one sweep over `dim` to a later one.

    These are the tiles that need a contraction; what follows from one that is kept by
    elementwise ops is not kept as well.
    """
    kept: list[SSAValue] = []
    for value in crossing_values(plan.ops, dim):
        needed = producers(value, plan.ops, kept)
        if any(isinstance(op, ContractOp) for op in needed):
            kept.append(value)
    return tuple(kept)


def fuse_function(
    func: FuncOp,
    system: SystemOp,
    strategy: Strategy = "auto",
    between: Between = "auto",
) -> None:
    """
    Rewrite the elementary ops of `func` as the kernels of a GPU.

    Raises PassFailedException if the function or the hardware does not allow it.
    """
    levels = gpu_levels(system)
    if strategy == "auto":
        strategy = "partial"
    rewrite(func, plan_function(func, strategy, between), levels)


def rewrite(func: FuncOp, plan: FunctionPlan, levels: GpuLevels) -> None:
    """Replace the body of `func` by grid nodes; its signature gets device memory."""
    old = func.body.block
    block = Block(arg_types=[with_level(a.type, levels.memory) for a in old.args])
    values: dict[SSAValue, SSAValue] = {}
    for argument, made in zip(old.args, block.args, strict=True):
        made.name_hint = argument.name_hint
        values[argument] = made
    kernels = {kernel.outs[0].owner: kernel for kernel in plan.kernels}
    for op in old.ops:
        if isinstance(op, RenameOp):
            made = RenameOp(values[op.input], with_level(op.result.type, levels.memory))
            block.add_op(made)
            values[op.result] = made.result
        elif (kernel := kernels.get(op)) is not None:
            node = build_kernel(kernel, levels, values)
            block.add_op(node)
            values.update(zip(kernel.outs, node.outs, strict=True))
    _return(old, block, values, levels)
    func.body.insert_block(block, 0)
    func.body.detach_block(old)
    old.erase(safe_erase=False)
    returned = block.last_op
    assert returned is not None
    func.properties["function_type"] = FunctionType.from_lists(
        block.arg_types, returned.operand_types
    )


def _return(
    old: Block, block: Block, values: dict[SSAValue, SSAValue], levels: GpuLevels
) -> None:
    """Return what the old body returned; a returned constant is made here."""
    terminator = old.last_op
    assert isinstance(terminator, ReturnOp)
    for value in terminator.operands:
        if value not in values and isinstance(value.owner, FillOp):
            made = FillOp(
                value.owner.value.value.data, with_level(value.type, levels.memory)
            )
            block.add_op(made)
            values[value] = made.result
    block.add_op(ReturnOp(*(values[value] for value in terminator.operands)))
