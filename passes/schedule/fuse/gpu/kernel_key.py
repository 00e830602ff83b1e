"""
A key that is equal for equal kernels, also if they are in different functions.

Copies of a module have equal kernels, and so have the layers of one function, with
different names. The key describes the ops and the tile tree of a kernel.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import FillOp, IndexOp, View
from comet.dialects.compound.gather import scatterings
from comet.dialects.description import Description
from comet.passes.schedule.fuse.gpu.scatters import stored_by
from comet.passes.schedule.tile_tree import Leaf, Spatial, Tree, chunks_of, live_outs


def kernel_key(kernel: Spatial) -> Hashable:
    """
    Return a key of all that the code of a kernel depends on, but for names.

    It describes the tree, the ops, the views and constants that are copied with them,
    and the types of the values that the kernel reads.
    """
    seen = Description(_is_copied)
    seen.operations(kernel.ops)
    tree = _tree(kernel, chunks_of(kernel.ops), seen)
    for value in kernel.outs:
        seen.operations(scatterings(value))
    stored = seen.values(stored_by(kernel))
    return tree, stored, seen.so_far


def _is_copied(op: Operation) -> bool:
    """Whether a function with this kernel alone would have a copy of `op`."""
    return isinstance(op, View | IndexOp | CollectiveOp | FillOp)


def _tree(tree: Tree, chunks: dict[SSAValue, SSAValue], seen: Description) -> Hashable:
    """Return a key of a tree; `chunks` maps chunks to the values they are chunks of."""
    if isinstance(tree, Leaf):
        return seen.operations(tree.ops)
    loops = tree.loops if isinstance(tree, Spatial) else tree.loop
    folds = () if isinstance(tree, Spatial) else seen.operations(tree.folds)
    mesh = tree.mesh if isinstance(tree, Spatial) else None
    ops, outs = seen.operations(tree.ops), seen.values(live_outs(tree, chunks))
    children = tuple(_tree(child, chunks, seen) for child in tree.children)
    return type(tree), tree.level, mesh, loops, folds, ops, outs, children
