"""
A separate name for a dimension after a gather.

Inside an SPMD region a dimension may have its local extent in some values and the
global one in others; in a tile tree a name has one extent per node. After a gather
along N all values computed from it get a new name, N1, so that both can be in one nest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import after_value
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    GatherOp,
    ReduceScatterOp,
    ScatterOp,
)
from comet.dialects.collective.spmd import (
    Sharding,
    SpmdOp,
    YieldOp,
    sharding_attr,
    sharding_of,
)
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    MapOp,
    PadOp,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import (
    names_of,
    unused,
    with_names,
)
from comet.passes.analysis.padding import argument_of, is_border

Gather: TypeAlias = AllGatherOp | GatherOp

KNOWN = (
    ContractOp,
    MapOp,
    ReduceOp,
    CastOp,
    PadOp,
    AllReduceOp,
    AllGatherOp,
    ReduceScatterOp,
    GatherOp,
    ScatterOp,
    BroadcastOp,
    YieldOp,
)
"""The ops whose dimensions follow from the names of their operands and their own."""


@dataclass(frozen=True)
class NamePlan:
    """A dimension's new name, and the ops that use it, in order."""

    old: str
    new: str
    users: tuple[Operation, ...]


def separate_names(region: SpmdOp, gather: Gather) -> None:
    """
    Give the dimension of `gather` a new name in all values computed from its result.

    Other operands with the old name are renamed first. A region with other ops than
    elementary ones and collectives after the gather is not changed, nor is one whose
    results have other uses than the return.
    """
    if (plan := plan_names(region, gather)) is None:
        return
    _rename_inputs(region, plan)
    renamed: dict[SSAValue, SSAValue] = {gather.result: _renamed(gather.result, plan)}
    for op in plan.users:
        _use_name(op, plan, renamed)
    _rename_results(region, plan)


def plan_names(region: SpmdOp, gather: Gather) -> NamePlan | None:
    """
    Return the ops computed from `gather`, and those computed only for them.

    None if the names cannot be changed.
    """
    old, ops = gather.dim.data, list(region.body.block.ops)
    chosen: set[Operation] = {gather}
    for op in ops:
        if any(operand.owner in chosen for operand in op.operands):
            chosen.add(op)
    chosen.remove(gather)
    for op in reversed(ops):
        uses = [use.operation for result in op.results for use in result.uses]
        if uses and op is not gather and chosen.issuperset(uses):
            chosen.add(op)
    users = [op for op in ops if op in chosen and not isinstance(op, FillOp)]
    outside = [use.operation for out in region.outs for use in out.uses]
    outside = [op for op in outside if not is_border(op)]
    supported = all(isinstance(op, KNOWN) for op in users)
    if old not in names_of(gather.input) or not supported:
        return None
    if not all(isinstance(op, ReturnOp) for op in outside):
        return None
    return NamePlan(old, unused(old, _names(region)), tuple(users))


def _names(region: SpmdOp) -> set[str]:
    """Return the dimensions of all values in a region."""
    inner = [v for op in region.body.block.ops for v in (*op.operands, *op.results)]
    return {name for v in (*region.ins, *inner) for name in names_of(v)}


def _renamed(value: SSAValue, plan: NamePlan) -> SSAValue:
    """Return `value` under the new name, right after its defining op."""
    rename = RenameOp(value, _type(value, plan))
    rename.result.name_hint = value.name_hint
    Rewriter.insert_op(rename, after_value(value))
    return rename.result


def _type(value: SSAValue, plan: NamePlan) -> Attribute:
    return with_names(value.type, {plan.old: plan.new})


def _use_name(op: Operation, plan: NamePlan, renamed: dict[SSAValue, SSAValue]) -> None:
    """Change `op` to the new name; `renamed` has values under both names."""
    for index, operand in enumerate(op.operands):
        if plan.old in names_of(operand):
            if operand not in renamed:
                renamed[operand] = _renamed(operand, plan)
            op.operands[index] = renamed[operand]
    dim = op.properties.get("dim")
    if isinstance(dim, StringAttr) and dim.data == plan.old:
        op.properties["dim"] = StringAttr(plan.new)
    _rename_result(op, plan)


def _rename_result(op: Operation, plan: NamePlan) -> None:
    """Give the results of `op`, and its padding, the new name."""
    if isinstance(op, PadOp):
        op.padding = op.padding.renamed(plan.old, plan.new)
    for result in op.results:
        if plan.old in names_of(result):
            Rewriter.replace_value_with_new_type(result, _type(result, plan))


def _rename_inputs(region: SpmdOp, plan: NamePlan) -> None:
    """Rename arguments of region and function that have no uses by the old name."""
    shardings = [sharding_of(attr) for attr in region.in_shardings]
    for index, (outer, inner) in enumerate(
        zip(region.ins, region.body.block.args, strict=True)
    ):
        users = {use.operation for use in inner.uses}
        argument = argument_of(outer) or outer
        free = isinstance(argument, BlockArgument) and argument.has_one_use()
        free = free and outer.has_one_use()
        if plan.old in names_of(inner) and free and users <= set(plan.users):
            if isinstance(outer.owner, PadOp):
                _rename_result(outer.owner, plan)
            for value in (argument, inner):
                Rewriter.replace_value_with_new_type(value, _type(value, plan))
            shardings[index] = _sharding(shardings[index], plan)
    region.in_shardings = ArrayAttr(map(sharding_attr, shardings))


def _rename_results(region: SpmdOp, plan: NamePlan) -> None:
    """Give the results of the region, and of the function, the yielded names."""
    shardings: list[Sharding] = []
    for out, local, sharding in region.boundary()[len(region.ins) :]:
        if plan.new in names_of(local):
            for op in [use.operation for use in out.uses if is_border(use.operation)]:
                _rename_result(op, plan)
            Rewriter.replace_value_with_new_type(out, _type(out, plan))
        new = plan.new in names_of(local)
        shardings.append(_sharding(sharding, plan) if new else sharding)
    region.out_shardings = ArrayAttr(map(sharding_attr, shardings))
    func = region.parent_op()
    assert isinstance(func, FuncOp)
    func.update_function_type()


def _sharding(sharding: Sharding, plan: NamePlan) -> Sharding:
    return {plan.new if d == plan.old else d: axes for d, axes in sharding.items()}
