"""`expert_gemm`: the product of each expert's tokens and weights."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, with the experts as its batch."""
    x, w = site.operands
    return site.emit.contract(x, w, site.dims["D"], site.accumulator, name="y")
