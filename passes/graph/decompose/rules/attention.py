"""`attention`: softmax(q k^T / sqrt(D)) v, by batch entry and head."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.dialects.compound.named.attention import AttentionOp
from comet.passes.graph.decompose.masking import position_mask
from comet.passes.graph.decompose.site import Site
from comet.passes.graph.decompose.softmax import attend


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, scale, the mask if causal, softmax over the keys, and contract."""
    assert isinstance(named, AttentionOp)
    return attend(site, "N", _mask if named.causal is not None else None)


def _mask(site: Site) -> SSAValue:
    """
    Emit the mask of the keys that are hidden from a query.

    Query m is m + N - M - n keys ahead of key n; for hidden keys, that is -1 or less.
    """
    emit, element = site.emit, site.accumulator
    queries, keys = site.extent("M"), site.extent("N")
    rows = emit.index(site.dims["M"], queries, element, name="m_index")
    columns = emit.index(site.dims["N"], keys, element, name="n_index")
    more = emit.fill(float(keys - queries), element, name="more")
    last = emit.map(MapKind.ADD, rows, more, name="last")
    distance = emit.map(MapKind.SUB, last, columns, name="distance")
    return position_mask(site, distance)
