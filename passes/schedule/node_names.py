"""
Names of the nodes of a tile tree, by which plans address them.

A name is the result of the node, and its axes, dimensions or level: `p` is the kernel
that computes %p, `c_k` a loop over K that computes %c, `c_ob` a loop whose result %c is
in OB, and `p_cx_cy` a node over two mesh axes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from comet.dialects.compound import MapOp, ReduceOp
from comet.dialects.compound.dims import level_of, unused
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import transfers

GRID = "grid"
"""The level of a launch grid."""
FOLD = "fold"
"""The level of the loop of a fold with nodes over a mesh inside."""


def name_nodes(func: FuncOp) -> None:
    """Name every node of `func` that has no name; names are unique."""
    nodes = [op for op in func.walk() if isinstance(op, NodeOp)]
    taken = {node.node_name for node in nodes}
    unnamed = [node for node in nodes if node.node_name is None]
    for node, derived in zip(unnamed, derived_names(unnamed), strict=True):
        name = unused(derived, taken, "_", first=2)
        taken.add(name)
        node.name_attr = StringAttr(name)


def derived_names(nodes: Sequence[NodeOp]) -> list[str]:
    """
    Return a name for each node, not always a different one.

    Nodes with the same result name and the same loops get the kind of the op that
    defines the result, if that is different.
    """
    keys = [(_result(node), _runs_over(node)) for node in nodes]
    kinds = [_kind(node) for node in nodes]
    variants = Counter(key for key, _ in set(zip(keys, kinds, strict=True)))
    names: list[str] = []
    for (result, over), kind in zip(keys, kinds, strict=True):
        parts = (result, kind if variants[result, over] > 1 else "", over)
        names.append("_".join(part for part in parts if part))
    return names


def _result(node: NodeOp) -> str:
    """Return the name of a node's result; without one, the kind of its defining op."""
    name = result_name(node.outs[0]) if node.outs else None
    return name or re.sub(r"\W", "_", _kind(node))


def result_name(value: SSAValue) -> str | None:
    """Return the name of a node with a result `value` and no loops, None without."""
    hint = value.name_hint
    return re.sub(r"\W", "_", hint) if hint else None


def _runs_over(node: NodeOp) -> str:
    """Return the mesh axes of a node, the dimensions of its loops, or its level."""
    if isinstance(node, SpatialOp):
        axes = () if node.mesh_name is None else (loop.axis for loop in node.loops)
        return "_".join(filter(None, axes))
    if node.init_args() or node.in_kernel:
        return "_".join(node.factors).lower()
    return node_level(node).lower()


def _kind(node: NodeOp) -> str:
    """Return the kind of op that defines the first result of a node."""
    op: Operation | None = node
    while isinstance(op, NodeOp):
        yielded = op.yielded[0] if op.yielded else None
        op = yielded.op if isinstance(yielded, OpResult) else None
    if isinstance(op, MapOp | ReduceOp):
        return str(op.kind.data)
    return "copy" if op is None else op.name.partition(".")[2]


def node_level(node: NodeOp) -> str:
    """Return the memory level of a node's tiles, or `grid`, or `fold`."""
    if isinstance(node, SpatialOp):
        return GRID
    if node.init_args() and is_spread(node):
        return FOLD
    return _shared_level(node) or level_of(node.outs[0]) or ""


def is_spread(node: NodeOp) -> bool:
    """Return whether `node` contains nodes over a mesh."""
    inner = (op for op in node.body.walk() if isinstance(op, SpatialOp))
    return any(op.mesh_name is not None for op in inner)


def _shared_level(node: NodeOp) -> str | None:
    """Return the level that nodes over a mesh in `node` load from, if any."""
    for op in node.body.block.ops:
        if isinstance(op, SpatialOp) and op.mesh_name is not None:
            for transfer in transfers(op):
                return transfer.outer_level
    return None


def node_kinds(node: NodeOp) -> frozenset[str]:
    """Return the kinds of the ops in `node`: op names, maps and reductions."""
    kinds: set[str] = set()
    for op in node.body.walk():
        kinds.add(op.name.partition(".")[2])
        if isinstance(op, MapOp | ReduceOp):
            kinds.add(str(op.kind.data))
    return frozenset(kinds)


def nest_number(node: NodeOp) -> str:
    """Return the number of the outermost node around `node`, from 1, as text."""
    outermost = node.outermost
    block = outermost.parent
    nests = [] if block is None else [op for op in block.ops if isinstance(op, NodeOp)]
    return str(1 + nests.index(outermost))
