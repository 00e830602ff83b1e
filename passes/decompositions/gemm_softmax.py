"""`gemm_softmax`: softmax(a b) over N, made safe by subtracting the row maximum."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.passes.decompositions.site import Site


def decompose_gemm_softmax(named: Operation, site: Site) -> SSAValue:
    """Emit contract, reduce max, sub, exp, reduce add and div."""
    emit, n = site.emit, site.dims["N"]
    a, b = site.operands
    c = emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    m = emit.reduce(ReduceKind.MAX, c, n, name="m")
    s = emit.map(MapKind.SUB, c, m, name="s")
    e = emit.map(MapKind.EXP, s, name="e")
    total = emit.reduce(ReduceKind.ADD, e, n, name="l")
    return emit.map(MapKind.DIV, e, total, name="p")
