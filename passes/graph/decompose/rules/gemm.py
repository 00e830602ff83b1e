"""`gemm` and `ag_gemm`: a b; shardings say which rank has which shard."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract."""
    a, b = site.operands
    return site.emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
