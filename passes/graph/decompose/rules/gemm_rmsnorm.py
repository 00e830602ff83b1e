"""`gemm_rmsnorm`: a b over the root of its mean square along N, scaled."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.named.normalize import GemmRmsnormOp
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, square, mean, root, normalization and scale."""
    assert isinstance(named, GemmRmsnormOp)
    emit = site.emit
    a, b, gamma = site.operands
    c = emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    square = emit.map(MapKind.MULT, c, c, name="square")
    squares = emit.reduce(ReduceKind.ADD, square, site.dims["N"], name="squares")
    inverse_n = emit.fill(1 / site.extent("N"), site.accumulator, name="inverse_n")
    mean = emit.map(MapKind.MULT, squares, inverse_n, name="mean")
    epsilon = emit.fill(named.epsilon.value.data, site.accumulator, name="epsilon")
    shifted = emit.map(MapKind.ADD, mean, epsilon, name="shifted")
    root = emit.map(MapKind.SQRT, shifted, name="root")
    normal = emit.map(MapKind.DIV, c, root, name="normal")
    return emit.map(MapKind.MULT, normal, site.wide(gamma), name="y")
