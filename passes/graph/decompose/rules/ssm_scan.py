"""
`ssm_scan`: the scan as a masked product of matrices, without a recurrence.

y_t is the sum over u <= t of exp(P_t - P_u) (c_t b_u) x_u, where P_t is the sum of
log_a up to t (Dao and Gu, "Transformers are SSMs", section 5: the dual form of the
scan). The dimension U is time as well: the earlier times of a step.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.dialects.compound.map import lowest_finite
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit the decay from u to t, the products of c_t and b_u, and their sum over u."""
    emit, dims = site.emit, site.dims
    x, log_a, b, c = site.operands
    h, u, s = dims["H"], dims["U"], dims["S"]
    past = _past(site)
    ones = emit.cast(past, site.accumulator, name="ones")
    terms = emit.rename(site.wide(log_a), (h, u))
    sums = emit.contract(terms, ones, u, site.accumulator, name="sums")
    log_decay = emit.map(MapKind.SUB, sums, emit.rename(sums, (h, u)), name="log_decay")
    # The exponential could overflow for future elements: it is 0 of what they become.
    lowest = lowest_finite(site.accumulator) / 2
    hidden = emit.fill(lowest, site.accumulator, name="hidden")
    masked = emit.map(MapKind.SELECT, past, log_decay, hidden, name="masked")
    decay = emit.map(MapKind.EXP, masked, name="decay")
    products = emit.contract(
        c, emit.rename(b, (h, u, s)), s, site.accumulator, name="products"
    )
    weights = site.narrow(emit.map(MapKind.MULT, products, decay, name="weights"))
    values = emit.rename(x, (h, u, dims["D"]))
    return emit.contract(weights, values, u, site.accumulator, name="y")


def _past(site: Site) -> SSAValue:
    """Emit where u <= t."""
    emit, extent = site.emit, site.extent("T")
    t = emit.index(site.dims["T"], extent, i32, name="t_index")
    u = emit.index(site.dims["U"], extent, i32, name="u_index")
    return emit.map(MapKind.GE, t, u, name="past")
