"""`gemm_silu`: SiLU(a b)."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.passes.graph.decompose.activations import silu
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract and the activation."""
    a, b = site.operands
    c = site.emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    return silu(site, c)
