"""
`pad`: elementary level -> elementary level, with larger extents in the body.

Arguments are padded at their first use and results are sliced, so the signature stays.
A reduction must find its neutral element in the padding. If padding an argument with
that number achieves this, the argument is padded so; otherwise a mask before the
reduction sets the padding.
`compound.extent` keeps the true extents. Takes functions that are not sharded yet, for
accelerators: kernels of GPUs mask short tiles instead. `to=auto` needs the hardware.
Rejects unknown dimensions, extents smaller than the true ones, folds, and split
dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.arch import attached_system, find_system
from comet.dialects.compound import ExtentOp, FillOp, PadOp, SliceOp
from comet.dialects.compound.dims import extents_of, names_of, with_extents
from comet.dialects.errors import OpError
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.graph.pad.extents import (
    Extents,
    check_extents,
    new_extents,
    parse_extents,
    suitable_extents,
)
from comet.passes.graph.pad.plan import PadPlan, plan_padding
from comet.passes.pipeline import AUTO
from comet.passes.sharding.boundary import says_sharding


@dataclass(frozen=True)
class PadPass(ModulePass):
    """Compute on larger extents, which divide evenly, and return the true positions."""

    name = "pad"

    to: str = AUTO
    """
    The padded extents, as in "N=272,K=128"; `auto` rounds dimensions up to multiples of
    the number of instances, if it does not divide them or they have few divisors.
    """

    def __post_init__(self) -> None:
        """Check the extents."""
        if self.to != AUTO:
            _ = parse_extents(self.to)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that has one of the dimensions."""
        functions = functions_at(op, self.name, IRLevel.ELEMENTARY)
        if (system := find_system(op)) is not None:
            require_accelerator(self.name, system)
        wanted = self.extents(op)
        check_extents(op, wanted)
        for func in functions:
            if says_sharding(func):
                raise OpError(
                    func,
                    f"pad: @{func.sym_name.data} is sharded already; run pad before "
                    "distribute",
                )
            true, padded = new_extents(func, wanted)
            pad_function(func, plan_padding(func, true, padded))

    def extents(self, module: ModuleOp) -> Extents:
        """Return the padded extents of the option; `auto` takes the least padding."""
        if self.to != AUTO:
            return parse_extents(self.to)
        found = suitable_extents(module, attached_system(module))
        return found[0] if found else {}


def padded_copy(module: ModuleOp, extents: str) -> ModuleOp:
    """Return a copy of `module` with larger extents."""
    copy = module.clone()
    PadPass(extents).apply(Context(), copy)
    return copy


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
        Rewriter.replace_op(op, FillOp(plan.true[op.dim.data], op.result.type))
        return
    for result in op.results:
        larger = with_extents(result.type, plan.padded)
        Rewriter.replace_value_with_new_type(result, larger)


def _slice(value: SSAValue, plan: PadPlan, returned: Operation) -> SSAValue:
    """Return a result without its padding; the argument, if it is a padded one."""
    if isinstance(value.owner, PadOp) and isinstance(value.owner.input, BlockArgument):
        return value.owner.input
    slice_op = SliceOp(value, with_extents(value.type, plan.true))
    slice_op.result.name_hint = value.name_hint
    Rewriter.insert_op(slice_op, InsertPoint.before(returned))
    return slice_op.result
