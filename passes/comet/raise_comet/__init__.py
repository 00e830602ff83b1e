"""The `raise-comet` pass: from a COMET mapping to its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.comet import ConstantsOp, MappingOp, ProblemOp
from comet.dialects.compound.dims import with_level
from comet.dialects.errors import about
from comet.dialects.reference import REFERENCE, reference_name
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.transfers import transfers
from comet.passes.comet.raise_comet.raised_block import (
    MESH,
    NotRaisable,
    RaisedBlock,
    add_ops,
    start_block,
)
from comet.passes.comet.raise_comet.tree import MappingLevels, MappingTree, RaisedNode
from comet.passes.schedule.retile import retile, set_loops
from comet.passes.schedule.tile_tree import InsertionScope, Temporal, build

Roots: TypeAlias = tuple[RaisedNode, ...]

FUNCTION = "mapping"
"""The name of the raised function."""


@dataclass(frozen=True)
class RaiseCometPass(ModulePass):
    """
    Lift a mapping of the `comet` dialect to the schedule level.

    Before: `comet.problem` and `comet.mapping`. After: a mesh, the function @mapping
    with the tile tree of the mapping, and its reference. Rejects a mapping that is no
    program: with a column that its parent does not have, columns that cut a dimension
    differently, a reduction that nothing completes, or a value read at a level to which
    nothing moves it.
    """

    name = "raise-comet"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        problem, mapping = _only(op, ProblemOp), _only(op, MappingOp)
        with about(mapping):
            raised = raise_mapping(problem, mapping)
        for old in [*op.body.block.ops]:
            if isinstance(old, ProblemOp | MappingOp | ConstantsOp):
                Rewriter.erase_op(old)
        op.body.block.add_ops(raised)


OpT = TypeVar("OpT", bound=Operation)


def _only(module: ModuleOp, kind: type[OpT]) -> OpT:
    found = [op for op in module.body.block.ops if isinstance(op, kind)]
    if len(found) != 1:
        raise PassFailedException(
            f"raise-comet: the module has {len(found)} ops '{kind.name}' where one is "
            "needed; read COMET files with -f comet"
        )
    return found[0]


def raise_mapping(problem: ProblemOp, mapping: MappingOp) -> list[Operation]:
    """
    Return the mesh, the function of a mapping, and its reference.

    Raises NotRaisable with the reason if a mapping is no program.
    """
    tree = MappingTree(problem, mapping.root)
    tree.check_parents()
    reference = start_block(problem, tree.bits)
    add_ops(reference, mapping.root, None)
    content = start_block(problem, tree.bits)
    add_ops(content, mapping.root, tree.group_of)
    roots = tuple(tree.trees(content))
    func = _mapping_function(tree, content, roots)
    func.location = mapping.location
    mesh = MeshOp(MESH, tree.axes, tree.axis_levels)
    reference_func = _reference_function(reference)
    raised: list[Operation] = [mesh, func, reference_func]
    module = ModuleOp(raised)
    _set_factors(func, roots)
    try:
        module.verify()
    except VerifyException as error:
        raise NotRaisable(str(error)) from error
    for op in raised:
        op.detach()
    return raised


def _reference_function(raised: RaisedBlock) -> FuncOp:
    """Return the elementary function of the mapping's operations."""
    block = raised.block
    block.add_op(ReturnOp(*raised.outputs))
    types = [value.type for value in raised.outputs]
    func = FuncOp(
        reference_name(FUNCTION), (block.arg_types, types), Region(block), "private"
    )
    func.attributes[REFERENCE] = UnitAttr()
    return func


def _mapping_function(tree: MappingTree, raised: RaisedBlock, roots: Roots) -> FuncOp:
    """Return the tile tree of a mapping as a function, still without factors."""
    nodes = [raised for root in roots for raised in root.walk()]
    tiles = {id(raised.node): raised.tile for raised in nodes if raised.tile}
    levels = MappingLevels(tree, raised, tiles)
    outer = tree.root.entries[0].target
    flat = raised.block
    flat.add_op(ReturnOp(*raised.outputs))
    block = Block(arg_types=[with_level(arg.type, outer) for arg in flat.args])
    scope = InsertionScope(block, None, levels, {})
    for value, argument in zip(flat.args, block.args, strict=True):
        scope.add(value, argument)
    for root in roots:
        build(root.node, scope)
    returned = ReturnOp(*(scope.at(value, outer) for value in raised.outputs))
    block.add_op(returned)
    flat.erase(safe_erase=False)
    return FuncOp(FUNCTION, (block.arg_types, returned.operand_types), Region(block))


def _set_factors(func: FuncOp, roots: Roots) -> None:
    """Give the temporal nodes the loops of the mapping, and recompute all types."""
    raised = [node for root in roots for node in root.walk()]
    loops = [item.loops for item in raised if isinstance(item.node, Temporal)]
    nodes = [op for op in func.walk() if isinstance(op, TemporalOp)]
    for node, node_loops in zip(nodes, loops, strict=True):
        set_loops(node, node_loops)
    try:
        retile(func)
    except VerifyException as error:
        raise NotRaisable(str(error)) from error
    for node in nodes:
        _check_transfers(node)
    func.update_function_type()


def _check_transfers(node: TemporalOp) -> None:
    """Raise NotRaisable if a value changes its level without a spatial node."""
    for transfer in transfers(node):
        raise NotRaisable(
            f"tensor {transfer.outer.name_hint} is at {transfer.outer_level} and used "
            f"at {transfer.tile_level}, and no spatial node moves it"
        )
