"""
Fusion on GPUs: which ops share a kernel, as a plan, and its rewrite.

`none` gives every contraction a kernel of its own and what stands between two of them
another; `partial` makes one kernel that sweeps over a row several times, tile by tile;
`full` makes one kernel that holds a whole row; `auto` takes the cheapest of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu import Device
from comet.dialects.arch import SystemOp
from comet.dialects.collective_spmd import SpmdOp
from comet.dialects.compound import ContractOp, FillOp, IndexOp, RenameOp
from comet.dialects.compound_dims import names_of, with_level
from comet.dialects.compound_named import CompoundOp
from comet.passes.fuse_auto import STRATEGY
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
from comet.passes.tile_gpu import best_tiling, grid_nodes, misfit, set_estimate
from comet.passes.tile_gpu_cost import device

Strategy: TypeAlias = Literal["none", "partial", "full", "auto"]
Between: TypeAlias = Literal["recompute", "spill", "auto"]


@dataclass(frozen=True)
class Choice:
    """What is decided for a whole function."""

    apart: bool
    """Every contraction has a kernel of its own."""
    whole: bool
    """A dimension that needs several sweeps is kept whole in registers instead."""
    spill: bool
    """Products that two sweeps need go through device memory, else twice computed."""

    @property
    def strategy(self) -> str:
        """The name of the strategy that the choice belongs to."""
        if self.apart:
            return "none"
        return "full" if self.whole else "partial"


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
    return tuple(op for op in without_constants(ops) if not isinstance(op, IndexOp))


def plan_function(func: FuncOp, choice: Choice) -> FunctionPlan:
    """Plan the kernels of a function."""
    ops = elementary_ops(func)
    renames = tuple(op for op in ops if isinstance(op, RenameOp))
    kernels = (
        _plan_kernel(group, outs, choice)
        for group in _groups(ops, choice)
        if (outs := _used_outside(group))
    )
    return FunctionPlan(tuple(kernels), renames)


def _groups(
    ops: Sequence[Operation], choice: Choice
) -> Iterator[tuple[Operation, ...]]:
    """Part the ops into kernels; a view of a computed value parts them too."""
    group: list[Operation] = []
    for op in ops:
        alone = choice.apart and isinstance(op, ContractOp)
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
    ops: tuple[Operation, ...], outs: tuple[SSAValue, ...], choice: Choice
) -> KernelPlan:
    """
    Choose the grid and the loops of one kernel.

    Programs split the dimensions that every result has and nothing reduces. A reduced
    dimension is looped over, unless it is kept whole instead of several sweeps.
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
        if not choice.whole or sweep_count(ops, dim) == 1
    )
    plan = KernelPlan(ops, outs, grid, loops)
    if not choice.spill:
        return plan
    kept = (value for dim in loops for value in costly_crossings(plan, dim))
    return replace(plan, spilled=frozenset(kept))


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

    Of the choices that the options leave, takes the one with the smallest estimated
    time. Raises PassFailedException if none fits, or for ops of another level.
    """
    levels = gpu_levels(system)
    gpu = device(system, levels)
    trials = [_tried(func, c, levels, gpu) for c in _choices(strategy, between)]
    best = min(trials, key=lambda trial: trial.seconds)
    if best.seconds == inf:
        raise PassFailedException(best.misfit)
    rewrite(func, plan_function(func, best.choice), levels)
    if strategy == "auto":
        func.attributes[STRATEGY] = StringAttr(best.choice.strategy)
    for node, seconds in zip(grid_nodes(func), best.kernels, strict=True):
        set_estimate(node, seconds - gpu.launch)


def _choices(strategy: Strategy, between: Between) -> Iterator[Choice]:
    """Yield the choices that the options of the pass leave open."""
    if strategy in ("full", "auto"):
        yield Choice(apart=False, whole=True, spill=False)
    if strategy in ("partial", "auto"):
        spills = {"recompute": (False,), "spill": (True,), "auto": (False, True)}
        yield from (Choice(False, False, spill) for spill in spills[between])
    if strategy in ("none", "auto"):
        yield from (Choice(True, whole, False) for whole in (True, False))


@dataclass(frozen=True)
class _Trial:
    """What one choice would cost."""

    choice: Choice
    kernels: tuple[float, ...]
    """Seconds of each kernel, up to the first that does not fit."""
    misfit: str = ""
    """Why a kernel does not fit, empty if all do."""

    @property
    def seconds(self) -> float:
        return inf if self.misfit else sum(self.kernels)


def _tried(func: FuncOp, choice: Choice, levels: GpuLevels, gpu: Device) -> _Trial:
    """Return what `choice` costs with the best tiles, tried on a copy."""
    trial = func.clone()
    rewrite(trial, plan_function(trial, choice), levels)
    kernels: list[float] = []
    for node in grid_nodes(trial):
        if (tiling := best_tiling(node, levels, gpu)) is None:
            return _Trial(choice, tuple(kernels), f"fuse: {misfit(node, levels, gpu)}")
        kernels.append(tiling.seconds)
    return _Trial(choice, tuple(kernels))


def rewrite(func: FuncOp, plan: FunctionPlan, levels: GpuLevels) -> None:
    """Replace the body of `func` by grid nodes; its signature gets device memory."""
    old = func.body.block
    block = Block(arg_types=[with_level(a.type, levels.memory) for a in old.args])
    values: dict[SSAValue, SSAValue] = {}
    for argument, made in zip(old.args, block.args, strict=True):
        made.name_hint = argument.name_hint
        values[argument] = made
    for op in old.ops:
        if isinstance(op, IndexOp):
            made = IndexOp(with_level(op.result.type, levels.memory))
            made.result.name_hint = op.result.name_hint
            block.add_op(made)
            values[op.result] = made.result
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
    _simplify(func)


def _simplify(func: FuncOp) -> None:
    """Drop what the first step of a fold does to its neutral element, and repeats."""
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(func.body)
    cse(func)


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
