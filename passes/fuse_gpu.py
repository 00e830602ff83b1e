"""
Fusion on GPUs: which ops share a kernel, as a plan, and its rewrite.

`none` gives every contraction a kernel of its own and what stands between two of them
another; `partial` makes one kernel that sweeps over a row several times, tile by tile;
`full` makes one kernel that holds a whole row; `auto` takes the cheapest of these. On
several GPUs all run the same kernels: these stand inside the SPMD region, which stays,
with the collectives between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.rewriter import Rewriter
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu import Device
from comet.dialects.arch import SystemOp
from comet.dialects.compound import IndexOp
from comet.dialects.compound_dims import with_level
from comet.passes.fuse import BETWEEN, STRATEGY
from comet.passes.fuse_gpu_build import KernelPlan, build_kernel
from comet.passes.fuse_gpu_plan import Choice, Step, plan_steps
from comet.passes.gpu_levels import GpuLevels, gpu_levels
from comet.passes.levels import compute_block, spmd_region
from comet.passes.tile_gpu import best_tiling, grid_nodes, misfit, set_estimate
from comet.passes.tile_gpu_cost import device

Strategy: TypeAlias = Literal["none", "partial", "full", "auto"]
Between: TypeAlias = Literal["recompute", "spill", "auto"]


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
    ranks = spmd_region(func) is not None
    choices = _choices(strategy, between, ranks)
    trials = [_tried(func, c, levels, gpu) for c in _different(func, choices)]
    best = min(trials, key=lambda trial: trial.seconds)
    if best.seconds == inf:
        raise PassFailedException(best.misfit)
    rewrite(func, plan_steps(func, best.choice), levels)
    if strategy == "auto":
        func.attributes[STRATEGY] = StringAttr(best.choice.strategy)
    if strategy == between == "auto":
        func.attributes[BETWEEN] = StringAttr(_between(best.choice, ranks))
    for node, seconds in zip(grid_nodes(func), best.kernels, strict=True):
        set_estimate(node, seconds - gpu.launch)


def _choices(strategy: Strategy, between: Between, ranks: bool) -> Iterator[Choice]:
    """
    Yield the choices that the options of the pass leave open.

    Only `ranks` have collectives, across which products may be computed again.
    """
    spills = {"recompute": (False,), "spill": (True,), "auto": (False, True)}[between]
    agains = {"recompute": (True,), "spill": (False,), "auto": (False, True)}[between]
    for again in agains if ranks else (False,):
        if strategy in ("full", "auto"):
            yield Choice(apart=False, whole=True, spill=False, again=again)
        if strategy in ("partial", "auto"):
            yield from (Choice(False, False, spill, again) for spill in spills)
    if strategy in ("none", "auto"):
        yield from (Choice(True, whole, False) for whole in (True, False))


def _between(choice: Choice, ranks: bool) -> Between:
    """Return the first value of the option that allows a choice, the closest first."""
    values: tuple[Between, ...] = ("recompute", "spill")
    for value in values:
        if choice in _choices(choice.strategy, value, ranks):
            return value
    return "auto"


def _different(func: FuncOp, choices: Iterable[Choice]) -> Iterator[Choice]:
    """Yield the choices that give different kernels; of equal ones the first."""
    seen: set[tuple[Step, ...]] = set()
    for choice in choices:
        if (steps := plan_steps(func, choice)) not in seen:
            seen.add(steps)
            yield choice


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
    rewrite(trial, plan_steps(trial, choice), levels)
    kernels: list[float] = []
    for node in grid_nodes(trial):
        if (tiling := best_tiling(node, levels, gpu)) is None:
            return _Trial(choice, tuple(kernels), f"fuse: {misfit(node, levels, gpu)}")
        kernels.append(tiling.seconds)
    return _Trial(choice, tuple(kernels))


def rewrite(func: FuncOp, steps: Sequence[Step], levels: GpuLevels) -> None:
    """Replace what one GPU runs by grid nodes; values outside get device memory."""
    old = compute_block(func)
    region, block = old.parent, _scheduled(old, steps, levels)
    assert region is not None
    region.insert_block(block, 0)
    region.detach_block(old)
    old.erase(safe_erase=False)
    _place_outside(func.body.block, levels)
    returned = func.body.block.last_op
    assert returned is not None
    func.properties["function_type"] = FunctionType.from_lists(
        func.body.block.arg_types, returned.operand_types
    )
    _simplify(func)


def _place_outside(block: Block, levels: GpuLevels) -> None:
    """Say of what stands in the function's own block that it is in device memory."""
    for value in (*block.args, *(result for op in block.ops for result in op.results)):
        if (placed := with_level(value.type, levels.memory)) != value.type:
            Rewriter.replace_value_with_new_type(value, placed)


def _scheduled(old: Block, steps: Sequence[Step], levels: GpuLevels) -> Block:
    """Return a block that does what `old` does by `steps`."""
    block = Block(arg_types=[with_level(a.type, levels.memory) for a in old.args])
    values: dict[SSAValue, SSAValue] = {}
    for argument, made in zip(old.args, block.args, strict=True):
        made.name_hint = argument.name_hint
        values[argument] = made
    for op in old.ops:
        if isinstance(op, IndexOp):
            _copy(op, block, values, levels)
    for step in steps:
        if isinstance(step, KernelPlan):
            node = build_kernel(step, levels, values)
            block.add_op(node)
            values.update(zip(step.outs, node.outs, strict=True))
        else:
            _copy(step, block, values, levels)
    _terminate(old, block, values)
    return block


def _copy(
    op: Operation, block: Block, values: dict[SSAValue, SSAValue], levels: GpuLevels
) -> None:
    """Append a copy of `op` on values in device memory."""
    made = op.create(
        operands=[values[value] for value in op.operands],
        result_types=[with_level(r.type, levels.memory) for r in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    block.add_op(made)
    for value, result in zip(op.results, made.results, strict=True):
        result.name_hint = value.name_hint
        values[value] = result


def _terminate(old: Block, block: Block, values: Mapping[SSAValue, SSAValue]) -> None:
    """Return or yield what the old block did."""
    terminator = old.last_op
    assert terminator is not None
    block.add_op(
        terminator.create(operands=[values[value] for value in terminator.operands])
    )


def _simplify(func: FuncOp) -> None:
    """Drop what the first step of a fold does to its neutral element, and repeats."""
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(func.body)
    cse(func)
