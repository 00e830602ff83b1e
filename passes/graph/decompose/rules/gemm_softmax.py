"""`gemm_softmax`: softmax(a b) over N."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.passes.graph.decompose.site import Site
from comet.passes.graph.decompose.softmax import softmax


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract and the softmax of its rows."""
    a, b = site.operands
    c = site.emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    return softmax(site, c, site.dims["N"])
