"""
A description of a kernel that is equal for equal kernels of different functions.

What a structural hash of ops is in MLIR (`OperationEquivalence`), with the tile tree.
Copies of a module have equal kernels, and so have the layers of one function, under
other names.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import FillOp, IndexOp, View
from comet.dialects.compound.gather import scatterings
from comet.passes.schedule.fuse.gpu.scatters import stored_by
from comet.passes.schedule.tile_tree import Leaf, Spatial, Tree, chunks_of, live_outs

COPIED = View | IndexOp | CollectiveOp | FillOp
"""Ops that the function of a kernel on its own has, too, if the kernel reads them."""


def kernel_key(kernel: Spatial) -> Hashable:
    """
    Return all that the code of a kernel depends on.

    These are its tree, its ops, what is copied along with them, and the types of the
    values that it reads. Not the names of values, from which those of nodes follow.
    """
    seen = _Seen()
    seen.operations(kernel.ops)
    tree = seen.tree(kernel, chunks_of(kernel.ops))
    for value in kernel.outs:
        seen.operations(scatterings(value))
    stored = seen.values(stored_by(kernel))
    return tree, stored, tuple(seen.described)


class _Seen:
    """Numbers values and ops as they are seen, and describes them in this order."""

    def __init__(self) -> None:
        self._numbers: dict[Operation | SSAValue, int] = {}
        self.described: list[Hashable] = []

    def tree(self, tree: Tree, chunks: dict[SSAValue, SSAValue]) -> Hashable:
        """Describe a tree, in which values stand for `chunks` of them."""
        if isinstance(tree, Leaf):
            return self.operations(tree.ops)
        loops = tree.loops if isinstance(tree, Spatial) else tree.loop
        folds = () if isinstance(tree, Spatial) else self.operations(tree.folds)
        mesh = tree.mesh if isinstance(tree, Spatial) else None
        ops, outs = self.operations(tree.ops), self.values(live_outs(tree, chunks))
        children = tuple(self.tree(child, chunks) for child in tree.children)
        return type(tree), tree.level, mesh, loops, folds, ops, outs, children

    def operations(self, ops: Iterable[Operation]) -> tuple[int, ...]:
        """Return the numbers of ops."""
        return tuple(map(self._operation, ops))

    def values(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        """Return the numbers of values."""
        return tuple(map(self._value, values))

    def _operation(self, op: Operation) -> int:
        if op not in self._numbers:
            read = self.values(op.operands)
            self._number(op)
            blocks = [block for region in op.regions for block in region.blocks]
            for value in (
                *op.results,
                *(arg for block in blocks for arg in block.args),
            ):
                self._number_value(value)
            inside = tuple(self.operations(block.ops) for block in blocks)
            properties = frozenset(op.properties.items())
            attributes = frozenset(op.attributes.items())
            self.described.append((op.name, read, properties, attributes, inside))
        return self._numbers[op]

    def _value(self, value: SSAValue) -> int:
        if value not in self._numbers:
            owner = value.owner
            if isinstance(owner, COPIED):
                self._operation(owner)
            else:
                self._number_value(value)
        return self._numbers[value]

    def _number_value(self, value: SSAValue) -> None:
        self._number(value)
        self.described.append(value.type)

    def _number(self, what: Operation | SSAValue) -> None:
        self._numbers[what] = len(self._numbers)
