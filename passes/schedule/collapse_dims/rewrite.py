"""The rewrite of `collapse-dims`: a run of dimensions of a kernel is collapsed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import after_value, values_in
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    level_of,
    names_of,
    tensor,
)
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.schedule.collapse_dims.runs import Run, collapsed_name, only_loop
from comet.passes.schedule.retile import set_loops
from comet.passes.schedule.tile_tree import loop_of


def collapse(node: SpatialOp, run: Run) -> None:
    """
    Collapse a run of dimensions of a kernel that is not tiled.

    The kernel reads views of its operands, and readers of its results view them with
    all dimensions.
    """
    inner = run[-1]
    for index in reversed(range(len(run) - 1)):
        name = collapsed_name(run[index:])
        _Pair(run[index], inner, name).collapse(node)
        inner = name


@dataclass(frozen=True)
class _Pair:
    """Two adjacent dimensions of a kernel that become one."""

    outer: str
    inner: str
    name: str
    """The name of the collapsed dimension."""

    def collapse(self, node: SpatialOp) -> None:
        """Collapse the pair in a kernel."""
        self._collapse_loops(node)
        for index, value in enumerate(node.ins):
            if self.outer in names_of(value):
                node.operands[index] = self._merged(value, InsertPoint.before(node))
        for value in tuple(values_in(node.body.block)):
            if self.outer in names_of(value):
                Rewriter.replace_value_with_new_type(value, self._type(value.type))
        for value in tuple(node.outs):
            if self.outer in names_of(value):
                self._split(value)

    def _type(self, type_: Attribute) -> TensorType[Element]:
        """Return a type in which the pair is collapsed."""
        extents = extents_of(type_)
        size = prod(extents[dim] for dim in (self.outer, self.inner))
        sizes = {
            self.name if dim == self.outer else dim: size if dim == self.outer else n
            for dim, n in extents.items()
            if dim != self.inner
        }
        return tensor(sizes, element_type_of(type_), level_of(type_))

    def _collapse_loops(self, node: SpatialOp) -> None:
        """Let loops over the outer dimension, and the grid, run over the pair."""
        for op in tuple(node.body.block.walk()):
            if not isinstance(op, TemporalOp) or self.outer not in op.factors:
                continue
            inner = only_loop(op)
            assert inner is not None
            operands = dict[SSAValue, SSAValue](
                zip(op.body.block.args, op.operands, strict=True)
            )
            inner.detach()
            inner.operands = [operands[value] for value in inner.operands]
            Rewriter.replace_op(op, inner)
            set_loops(inner, [loop_of(self.name, 1)])
            inner.name_attr = None
        if self.outer in node.factors:
            dims = (dim for dim in node.factors if dim != self.inner)
            dims = (self.name if dim == self.outer else dim for dim in dims)
            set_loops(node, [loop_of(dim, 1, f"g{i}") for i, dim in enumerate(dims)])

    def _merged(self, value: SSAValue, at: InsertPoint) -> SSAValue:
        """Return a value with the pair collapsed: the operand of a split, or a view."""
        type_ = self._type(value.type)
        op = value.owner
        if isinstance(op, RenameOp) and op.cut and op.renaming[op.cut] == self.outer:
            if op.input.type == type_:
                return op.input
            return _inserted(RenameOp(op.input, type_), at, value)
        return _inserted(RenameOp(value, type_, merge=self.outer), at, value)

    def _split(self, value: SSAValue) -> None:
        """Collapse the pair in a result of a kernel, which readers view as two."""
        old = value.type
        new = Rewriter.replace_value_with_new_type(value, self._type(old))
        uses = tuple(new.uses)
        view = _inserted(RenameOp(new, old, split=self.name), after_value(new), new)
        for use in uses:
            use.operation.operands[use.index] = view


def _inserted(op: RenameOp, at: InsertPoint, like: SSAValue) -> SSAValue:
    """Insert a view, with the name of its operand."""
    Rewriter.insert_op(op, at)
    op.result.name_hint = like.name_hint
    return op.result
