"""The rewrite of a fusion plan: ops become tile trees, on every kind of machine."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import defined_in, terminator_of
from comet.dialects.compound.dims import with_level
from comet.passes.schedule.retile import retile
from comet.passes.schedule.tile_tree import Aliases, InsertionScope, Levels, Tree, build


@dataclass(frozen=True)
class FusionPlan:
    """The trees that replace the ops of a block, and the levels of their values."""

    block: Block
    """The block that is replaced: of the function, or of its SPMD region."""
    trees: tuple[Tree, ...]
    """Nests or kernels, with leaves between them, in order."""
    outputs: tuple[SSAValue, ...]
    """The values that the block returns or yields."""
    levels: Levels
    aliases: Aliases


def rewrite(func: FuncOp, plan: FusionPlan) -> None:
    """Replace the block of a plan by its trees, and update all types of `func`."""
    old, level_of = plan.block, plan.levels.at
    arguments = [with_level(arg.type, level_of(arg, None)) for arg in old.args]
    block, region = Block(arg_types=arguments), old.parent
    assert region is not None
    scope = InsertionScope(block, None, plan.levels, plan.aliases)
    for argument, new_argument in zip(old.args, block.args, strict=True):
        scope.add(argument, new_argument)
    for tree in plan.trees:
        build(tree, scope)
    terminator = terminator_of(old)
    results = [scope.at(value, level_of(value, None)) for value in plan.outputs]
    block.add_op(terminator.create(operands=results))
    region.insert_block(block, 0)
    region.detach_block(old)
    old.erase(safe_erase=False)
    _place_outside(func.body.block, plan.levels)
    retile(func)
    func.update_function_type()


def _place_outside(block: Block, levels: Levels) -> None:
    """Set the level of the values in the function's own block."""
    for value in tuple(defined_in(block)):
        fitting = with_level(value.type, levels.at(value, None))
        if fitting != value.type:
            Rewriter.replace_value_with_new_type(value, fitting)
