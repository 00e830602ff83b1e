"""Softmax along one dimension, for several named ops."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.map import lowest_finite
from comet.passes.graph.decompose.site import Site


def attend(
    site: Site, dim: str, visible: Callable[[Site], SSAValue] | None
) -> SSAValue:
    """
    Emit contract, scale, softmax over the keys, and contract.

    Scores of keys that are not `visible` are replaced by a very low finite number.
    Partials that have only such keys then vanish when they are merged.
    """
    emit, keys = site.emit, site.dims[dim]
    q, k, v = site.operands[:3]
    products = emit.contract(q, k, site.dims["D"], site.accumulator, name="products")
    scale = emit.fill(1 / sqrt(site.extent("D")), site.accumulator, name="scale")
    scores = emit.map(MapKind.MULT, products, scale, name="scores")
    if visible is not None:
        lowest = lowest_finite(site.accumulator) / 2
        hidden = emit.fill(lowest, site.accumulator, name="hidden")
        cases = visible(site), scores, hidden
        scores = emit.map(MapKind.SELECT, *cases, name="masked")
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
