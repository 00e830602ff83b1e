"""
`outline-mappings`: elementary level -> dataflow level, where one mapping is too few.

A mapping of COMET files is one tile tree over tensors with one name for each dimension.
If a graph has views of computed values (renames, slices, concats), or a dimension with
two extents, it becomes a chain of mappings, each in a module of its own beside the
function. The views are between the mappings, of tensors in the root memory. A function
that one mapping can hold stays as it is, unless `mappings` says how to cut it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.chain import MappingOp
from comet.dialects.collective.mesh import MeshOp
from comet.passes.analysis.functions import function_of
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.outline_mappings.cuts import (
    earliest,
    given_mappings,
    mappings_at,
)
from comet.passes.dataflow.outline_mappings.plan import (
    NAME,
    ROOT_VIEWS,
    Chain,
    Graph,
    PlannedMapping,
    check_graph,
)
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class OutlineMappingsPass(FunctionPass):
    """Cut a graph into a chain of mappings, each in a module of its own."""

    name = NAME

    LEVELS = (IRLevel.ELEMENTARY,)

    mappings: str = "auto"
    """
    The names of the values that each mapping stores, as in "h1; q k; z", in order;
    `auto`: as few mappings as possible, and none where the function is one.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        require_accelerator(self.name, attached_system(module))
        graph = Graph(function)
        if self.mappings != "auto" or not graph.is_one_mapping:
            check_graph(graph)
            outline(graph, plan_chain(graph, self.mappings))


def plan_chain(graph: Graph, mappings: str) -> Chain:
    """Return the mappings that the option says; raises PassFailedException."""
    if mappings == "auto":
        return mappings_at(graph, earliest(graph))
    return given_mappings(graph, mappings)


def outline(graph: Graph, chain: Chain) -> None:
    """Replace the ops of a function by the mappings of a chain and views between."""
    func = graph.func
    names = tuple(mapping_names(func, len(chain)))
    pairs = tuple(zip(chain, names, strict=True))
    modules = [mapping_module(func, planned, name) for planned, name in pairs]
    block = func.body.block
    *ops, returned = block.ops
    for op in (*ops, returned):
        op.detach()
    values: dict[SSAValue, SSAValue] = {}
    for planned, name in pairs:
        _place_views(block, planned.reads)
        reads = [values.get(value, value) for value in planned.reads]
        op = MappingOp(name, reads, [value.type for value in planned.writes])
        op.location = func.location
        block.add_op(op)
        values |= dict(zip(planned.writes, op.outs, strict=True))
        for old, new in zip(planned.writes, op.outs, strict=True):
            old.replace_all_uses_with(new)
    _place_views(block, returned.operands)
    block.add_op(returned)
    for op in reversed(ops):
        if op.parent is None:
            op.erase()
    Rewriter.insert_op(modules, InsertPoint.after(func))


def _place_views(block: Block, values: Iterable[SSAValue]) -> None:
    """Add the views that make `values` to a block, unless it has them."""
    for value in values:
        op = value.owner
        if isinstance(op, ROOT_VIEWS) and op.parent is None:
            _place_views(block, op.operands)
            block.add_op(op)


def mapping_names(func: FuncOp, count: int) -> Iterator[str]:
    """Yield names for the mappings of a function that no symbol of the module has."""
    function_name = func.sym_name.data
    for number in range(1, count + 1):
        name = f"{function_name}_{number}"
        while SymbolTable.lookup_symbol(func, name) is not None:
            name += "_"
        yield name


def mapping_module(func: FuncOp, planned: PlannedMapping, name: str) -> ModuleOp:
    """Return a module for one mapping: the machine, and a function with its ops."""
    outlined = function_of(name, planned.ops, planned.reads, planned.writes)
    outlined.location = func.location
    around = func.parent_op()
    assert isinstance(around, ModuleOp)
    machine = [op.clone() for op in around.ops if isinstance(op, SystemOp | MeshOp)]
    return ModuleOp([*machine, outlined], sym_name=StringAttr(name))
