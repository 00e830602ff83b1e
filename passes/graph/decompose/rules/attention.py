"""`attention`: softmax(q k^T / sqrt(D)) v, by batch entry and head."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.dialects.compound.dims import extents_of
from comet.dialects.compound.named.attention import AttentionOp
from comet.passes.graph.decompose.site import Site
from comet.passes.graph.decompose.softmax import attend


def decompose(named: Operation, site: Site) -> SSAValue:
    """
    Emit contract, scale, a selection if causal, softmax over the keys, and contract.

    With all query heads in one dimension, that dimension is split by key head.
    """
    assert isinstance(named, AttentionOp)
    visible = _visible if named.causal is not None else None
    if named.form != "flat":
        return attend(site, "N", visible)
    emit, (q, k, v) = site.emit, site.operands
    flat, key_head, group = (site.dims[dim] for dim in ("HG", "H", "G"))
    parts = extents_of(k)[key_head]
    grouped = emit.split(q, flat, (key_head, group), parts)
    o = site.narrow(attend(replace(site, operands=(grouped, k, v)), "N", visible))
    return emit.merge(o, (key_head, group), flat)


def _visible(site: Site) -> SSAValue:
    """Emit which keys a query sees: query m the keys up to m + N - M."""
    emit, queries, keys = site.emit, site.extent("M"), site.extent("N")
    rows = emit.index(site.dims["M"], queries, i32, name="m_index")
    columns = emit.index(site.dims["N"], keys, i32, name="n_index")
    more = emit.fill(float(keys - queries), i32, name="more")
    last = emit.map(MapKind.ADD, rows, more, name="last")
    return emit.map(MapKind.GE, last, columns, name="visible")
