"""
Fusion on GPUs: the rewrite of what one GPU does as kernels.

On several GPUs all run the same kernels: these stand inside the SPMD region, which
stays, with the collectives between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.rewriter import Rewriter
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce

from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import with_level
from comet.passes.analysis.levels import compute_block
from comet.passes.schedule.fuse.gpu.build import KernelPlan, build_kernel
from comet.passes.schedule.fuse.gpu.plan import Step


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
    simplify(func)


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
            copy_op(op, block, values, levels)
    for step in steps:
        if isinstance(step, KernelPlan):
            node = build_kernel(step, levels, values)
            block.add_op(node)
            values.update(zip(step.outs, node.outs, strict=True))
        else:
            copy_op(step, block, values, levels)
    _terminate(old, block, values)
    return block


def copy_op(
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


def simplify(func: FuncOp) -> None:
    """Drop what the first step of a fold does to its neutral element, and repeats."""
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(func.body)
    cse(func)
