"""
`coalesce-loops`: perfect nests of loops become one loop.

A software pipeline loads ahead in the innermost loop, and fills again whenever that
begins. A product that sums over several dimensions, such as the projection of attention
over heads and their elements, is a nest; as one loop it fills the pipeline once. Takes
launch plans at the dataflow level. The nodes of a nest become one with all of their
loops, which has the property `coalesce`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import copy_names
from comet.dialects.dataflow.loop_nests import Nest, coalescible_nests
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class CoalesceLoopsPass(FunctionPass):
    """Make one loop of each perfect nest that sums products."""

    name = "coalesce-loops"

    LEVELS = (IRLevel.DATAFLOW,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for nest in plan_loops(function):
            coalesce(nest)


def plan_loops(function: FuncOp) -> tuple[Nest, ...]:
    """Return the nests with several loops that have several iterations."""
    grids = (op for op in function.walk() if isinstance(op, SpatialOp) and op.is_grid)
    nests = chain.from_iterable(map(coalescible_nests, grids))
    return tuple(
        nest
        for nest in nests
        if sum(loop.factor > 1 for node in nest for loop in node.loops) > 1
    )


def coalesce(nest: Nest) -> None:
    """Put the loops of a nest in one node, with the body of the innermost."""
    outermost, innermost = nest[0], nest[-1]
    operands = list(innermost.ins)
    for node in reversed(nest[:-1]):
        values = dict(zip(node.tiles, node.ins, strict=True))
        operands = [values[operand] for operand in operands]
    whole = TemporalOp(
        [loop for node in nest for loop in node.loops],
        operands,
        (),
        [out.type for out in outermost.outs],
        outermost.combiners,
        innermost.detach_region(innermost.body),
    )
    whole.name_attr, whole.coalesce = innermost.name_attr, UnitAttr()
    copy_names(outermost.outs, whole.outs)
    Rewriter.replace_op(outermost, whole)
