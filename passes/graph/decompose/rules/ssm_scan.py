"""
`ssm_scan`: the scan as a masked product of matrices, without a recurrence.

y_t is the sum over u <= t of exp(P_t - P_u) (c_t b_u) x_u, where P_t is the sum of
log_a up to t (Dao and Gu, "Transformers are SSMs", section 5: the dual form of the
scan). The dimension U is time as well: the earlier times of a step.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit the decay from u to t, the products of c_t and b_u, and their sum over u."""
    emit, dims = site.emit, site.dims
    x, log_a, b, c = site.operands
    h, u, s = dims["H"], dims["U"], dims["S"]
    past = _past(site)
    terms = emit.rename(site.wide(log_a), (h, u))
    sums = emit.contract(terms, past, u, site.accumulator, name="sums")
    log_decay = emit.map(MapKind.SUB, sums, emit.rename(sums, (h, u)), name="log_decay")
    # Future elements are masked before exp, which could overflow there, and after it.
    masked = emit.map(MapKind.MULT, log_decay, past, name="masked")
    decay = emit.map(MapKind.EXP, masked, name="decay")
    kept = emit.map(MapKind.MULT, decay, past, name="kept")
    products = emit.contract(
        c, emit.rename(b, (h, u, s)), s, site.accumulator, name="products"
    )
    weights = site.narrow(emit.map(MapKind.MULT, products, kept, name="weights"))
    values = emit.rename(x, (h, u, dims["D"]))
    return emit.contract(weights, values, u, site.accumulator, name="y")


def _past(site: Site) -> SSAValue:
    """Emit 1 where u <= t and 0 elsewhere."""
    emit, element, extent = site.emit, site.accumulator, site.extent("T")
    t = emit.index(site.dims["T"], extent, element, name="t_index")
    u = emit.index(site.dims["U"], extent, element, name="u_index")
    one = emit.fill(1.0, element, name="one")
    zero = emit.fill(0.0, element, name="zero")
    distance = emit.map(MapKind.SUB, t, u, name="distance")
    next_one = emit.map(MapKind.ADD, distance, one, name="next")
    least = emit.map(MapKind.MAX, next_one, zero, name="least")
    return emit.map(MapKind.MIN, least, one, name="past")
