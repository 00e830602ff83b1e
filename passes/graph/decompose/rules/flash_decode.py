"""`flash_decode`: the attention of one token to the keys of its batch entry."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.masking import position_mask
from comet.passes.graph.decompose.site import Site
from comet.passes.graph.decompose.softmax import attend


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, scale, the mask, softmax over the keys, and contract."""
    return attend(site, "S", _mask)


def _mask(site: Site) -> SSAValue:
    """Emit the mask of the keys from the length on, for each batch entry."""
    emit, element = site.emit, site.accumulator
    length = site.wide(site.operands[3])
    keys = emit.index(site.dims["S"], site.extent("S"), element, name="s_index")
    one = emit.fill(1.0, element, name="one")
    last = emit.map(MapKind.SUB, length, one, name="last")
    return position_mask(site, emit.map(MapKind.SUB, last, keys, name="distance"))
