"""`gated_mlp`: (silu(x gate) * (x up)) down."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.activations import silu
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit two contracts, the gate, and the contract of their product."""
    emit, k = site.emit, site.dims["K"]
    x, gate, up, down = site.operands
    opening = emit.contract(x, gate, k, site.accumulator, name="opening")
    wide = emit.contract(x, up, k, site.accumulator, name="wide")
    hidden = emit.map(MapKind.MULT, silu(site, opening), wide, name="hidden")
    left = site.narrow(hidden)
    return emit.contract(left, down, site.dims["N"], site.accumulator, name="y")
