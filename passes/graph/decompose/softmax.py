"""Softmax along one dimension, for several named ops."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.passes.graph.decompose.site import Site


def attend(site: Site, dim: str, mask: Callable[[Site], SSAValue] | None) -> SSAValue:
    """Emit contract, scale, the mask if any, softmax over the keys, and contract."""
    emit, keys = site.emit, site.dims[dim]
    q, k, v = site.operands[:3]
    products = emit.contract(q, k, site.dims["D"], site.accumulator, name="products")
    scale = emit.fill(1 / sqrt(site.extent("D")), site.accumulator, name="scale")
    scores = emit.map(MapKind.MULT, products, scale, name="scores")
    if mask is not None:
        scores = emit.map(MapKind.ADD, scores, mask(site), name="masked")
    weights = site.narrow(softmax(site, scores, keys))
    return emit.contract(weights, v, keys, site.accumulator, name="o")


def softmax(site: Site, scores: SSAValue, dim: str) -> SSAValue:
    """Emit reduce max, sub, exp, reduce add and div: safe for scores of any size."""
    emit = site.emit
    m = emit.reduce(ReduceKind.MAX, scores, dim, name="m")
    s = emit.map(MapKind.SUB, scores, m, name="s")
    e = emit.map(MapKind.EXP, s, name="e")
    total = emit.reduce(ReduceKind.ADD, e, dim, name="l")
    return emit.map(MapKind.DIV, e, total, name="p")
