"""The rewrite of `pad`: larger types, with pads, masks and slices."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import ExtentOp, FillOp, PadOp, SliceOp
from comet.dialects.compound.dims import extents_of, names_of, with_extents
from comet.passes.graph.pad.plan import PadPlan


def pad_function(func: FuncOp, plan: PadPlan) -> None:
    """Rewrite the body of `func` to padded extents; the signature stays."""
    *ops, returned = func.body.block.ops
    for value, number in plan.arguments.items():
        extents = {dim: plan.true[dim] for dim in names_of(value) if dim in plan.true}
        _pad(value, number, extents, (*ops, returned)[0])
    for mask in plan.masks:
        extents = {dim: plan.true[dim] for dim in mask.dims}
        _pad(mask.value, mask.number, extents, mask.reader)
    for op in list(func.body.block.ops)[:-1]:
        _enlarge(op, plan)
    for index, value in enumerate(returned.operands):
        if plan.padded.keys() & extents_of(value).keys():
            returned.operands[index] = _slice(value, plan, returned)


def _pad(
    value: SSAValue, number: float, extents: Mapping[str, int], reader: Operation
) -> None:
    """Let `reader` and later ops read `value` through a pad with `number`."""
    pad = PadOp(value, number, extents, value.type)
    pad.result.name_hint = value.name_hint
    Rewriter.insert_op(pad, InsertPoint.before(reader))
    value.replace_uses_with_if(
        pad.result, lambda use: pad.is_before_in_block(use.operation)
    )


def _enlarge(op: Operation, plan: PadPlan) -> None:
    """Give the results of `op` their padded extents; `extent` becomes the true one."""
    if isinstance(op, ExtentOp) and op.dim.data in plan.padded:
        true = FillOp(plan.true[op.dim.data], op.result.type)
        true.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, true)
        return
    for result in op.results:
        larger = with_extents(result.type, plan.padded)
        Rewriter.replace_value_with_new_type(result, larger)


def _slice(value: SSAValue, plan: PadPlan, returned: Operation) -> SSAValue:
    """Return a result without its padding; the argument, if it is a padded one."""
    if isinstance(value.owner, PadOp) and isinstance(value.owner.input, BlockArgument):
        return value.owner.input
    made = SliceOp(value, with_extents(value.type, plan.true))
    made.result.name_hint = value.name_hint
    Rewriter.insert_op(made, InsertPoint.before(returned))
    return made.result
