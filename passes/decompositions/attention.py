"""`attention`: softmax(q k^T / sqrt(D)) v, by batch entry and head."""

from __future__ import annotations

from math import sqrt

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import MapKind
from comet.dialects.compound_attention import AttentionOp
from comet.passes.decompositions.site import Site
from comet.passes.decompositions.softmax import softmax


def decompose_attention(named: Operation, site: Site) -> SSAValue:
    """
    Emit contract, scale, softmax over the keys, and contract.

    Raises PassFailedException for a causal mask.
    """
    assert isinstance(named, AttentionOp)
    if named.causal is not None:
        raise PassFailedException(
            "decompose: 'compound.attention' op is causal, and no elementary op tells "
            "where in a dimension an element stands; leave causal out"
        )
    emit, dims = site.emit, site.dims
    q, k, v = site.operands
    products = emit.contract(q, k, dims["D"], site.accumulator, name="products")
    scale = emit.fill(1 / sqrt(site.extent("D")), site.accumulator, name="scale")
    scores = emit.map(MapKind.MULT, products, scale, name="scores")
    weights = site.narrow(softmax(site, scores, dims["N"]))
    return emit.contract(weights, v, dims["N"], site.accumulator, name="o")
