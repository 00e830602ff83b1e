"""`gemm_bias_relu`: max(a b + bias, 0)."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, sum and maximum."""
    emit = site.emit
    a, b, bias = site.operands
    c = emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    shifted = emit.map(MapKind.ADD, c, site.wide(bias), name="shifted")
    zero = emit.fill(0.0, site.accumulator, name="zero")
    return emit.map(MapKind.MAX, shifted, zero, name="y")
