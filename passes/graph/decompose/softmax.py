"""Softmax along one dimension, which several named ops hold."""

from __future__ import annotations

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.passes.graph.decompose.site import Site


def softmax(site: Site, scores: SSAValue, dim: str) -> SSAValue:
    """Emit reduce max, sub, exp, reduce add and div: safe at any size of scores."""
    emit = site.emit
    m = emit.reduce(ReduceKind.MAX, scores, dim, name="m")
    s = emit.map(MapKind.SUB, scores, m, name="s")
    e = emit.map(MapKind.EXP, s, name="e")
    total = emit.reduce(ReduceKind.ADD, e, dim, name="l")
    return emit.map(MapKind.DIV, e, total, name="p")
