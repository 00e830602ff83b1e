"""`gemm_layernorm`: LayerNorm of a b over N, in two passes for mean and variance."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.named.normalize import GemmLayernormOp
from comet.passes.graph.decompose.site import Site


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit contract, mean, biased variance, normalization, scale and shift."""
    assert isinstance(named, GemmLayernormOp)
    emit, n = site.emit, site.dims["N"]
    a, b, gamma, beta = site.operands
    c = emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
    inverse_n = emit.fill(1 / site.extent("N"), site.accumulator, name="inverse_n")
    total = emit.reduce(ReduceKind.ADD, c, n, name="sum")
    mean = emit.map(MapKind.MULT, total, inverse_n, name="mean")
    centred = emit.map(MapKind.SUB, c, mean, name="centred")
    square = emit.map(MapKind.MULT, centred, centred, name="square")
    squares = emit.reduce(ReduceKind.ADD, square, n, name="squares")
    variance = emit.map(MapKind.MULT, squares, inverse_n, name="variance")
    epsilon = emit.fill(named.epsilon.value.data, site.accumulator, name="epsilon")
    shifted = emit.map(MapKind.ADD, variance, epsilon, name="shifted")
    deviation = emit.map(MapKind.SQRT, shifted, name="deviation")
    normal = emit.map(MapKind.DIV, centred, deviation, name="normal")
    scaled = emit.map(MapKind.MULT, normal, site.wide(gamma), name="scaled")
    return emit.map(MapKind.ADD, scaled, site.wide(beta), name="y")
