"""`gemm_gemm`: (a b) c, the product between them in the type of the operands."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, the cast that the second one needs, and contract."""
    a, b, c = site.operands
    product = site.emit.contract(a, b, site.dims["K"], site.accumulator, name="ab")
    left = site.narrow(product)
    return site.emit.contract(left, c, site.dims["N"], site.accumulator, name="y")
