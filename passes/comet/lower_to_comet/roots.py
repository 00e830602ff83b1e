"""
How a gather to the root is written in COMET files.

In the files a gathered tensor keeps its name and its dimensions; only the factors of
the operations after the gather show that they run on the root alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.collective import AllGatherOp, GatherOp
from comet.dialects.collective.roots import Roots, roots_after
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
    tensor,
)
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.retile import set_loops

Names = Mapping[str, str]
"""From new names of dimensions to the old ones."""


def gathered_names(func: FuncOp) -> dict[str, str]:
    """Return the new names of gathered dimensions, with their old ones."""
    names: dict[str, str] = {}
    for op in func.walk():
        if isinstance(op, RenameOp) and isinstance(
            op.input.owner, AllGatherOp | GatherOp
        ):
            names |= {new: old for old, new in op.renaming.items() if new != old}
    return {new: names.get(old, old) for new, old in names.items()}


def restore_names(func: FuncOp, names: Names) -> None:
    """Give gathered dimensions their old names back, in all values and loops."""
    for op in list(func.walk()):
        for block in (block for region in op.regions for block in region.blocks):
            _restore(block.args, names)
        _restore(op.results, names)
        if isinstance(op, NodeOp):
            set_loops(op, [_old_loop(loop, names) for loop in op.loops])


def _restore(values: Sequence[SSAValue], names: Names) -> None:
    for value in values:
        if set(names_of(value)) & names.keys():
            Rewriter.replace_value_with_new_type(value, _old_type(value, names))


def _old_type(value: SSAValue, names: Names) -> Attribute:
    extents = {names.get(dim, dim): n for dim, n in extents_of(value).items()}
    return tensor(extents, element_type_of(value), level_of(value))


def _old_loop(loop: LoopAttr, names: Names) -> LoopAttr:
    return LoopAttr(names.get(loop.dim, loop.dim), loop.factor, loop.axis)


def idle_axes(func: FuncOp) -> dict[Operation, frozenset[str]]:
    """Return the mesh axes of which only one instance runs an op, if there are any."""
    found: dict[Operation, frozenset[str]] = {}
    _follow(func.body.block, {}, found)
    return found


def _follow(
    block: Block,
    roots: dict[SSAValue, Roots],
    found: dict[Operation, frozenset[str]],
) -> None:
    """Record the roots of all values in `block`, in order, and the ops on them."""
    for op in block.ops:
        if not isinstance(op, NodeOp):
            roots |= dict.fromkeys(op.results, here := roots_after(op, roots))
            if axes := frozenset(axis for group in here for axis in group):
                found[op] = axes
            continue
        outer = op.operands
        for value, argument in zip(outer, op.body.block.args, strict=True):
            roots[argument] = roots.get(value, {})
        _follow(op.body.block, roots, found)
        own = {loop.axis for loop in op.loops}
        for inner, out in zip(op.yielded, op.outs, strict=True):
            kept = roots.get(inner, {}).items()
            roots[out] = {group: n for group, n in kept if not own & set(group)}
