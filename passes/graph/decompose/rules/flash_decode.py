"""`flash_decode`: the attention of one token to the keys of its batch entry."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.site import Site
from comet.passes.graph.decompose.softmax import attend


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, scale, a selection, softmax over the keys, and contract."""
    return attend(site, "S", _visible)


def _visible(site: Site) -> SSAValue:
    """Emit which keys are visible: those before the length of their batch entry."""
    emit = site.emit
    keys = emit.index(site.dims["S"], site.extent("S"), i32, name="s_index")
    one = emit.fill(1.0, i32, name="one")
    last = emit.map(MapKind.SUB, site.operands[3], one, name="last")
    return emit.map(MapKind.GE, last, keys, name="visible")
