"""
Softmax times a matrix: the row maximum m, the sum l of exp(x - m), and exp(x - m) v.

The running form of flash attention rescales l and o whenever m grows and divides once,
at the end (Dao et al., "FlashAttention", section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from comet.dialects.compound import CastOp, ContractOp, MapKind, ReduceKind, ReduceOp
from comet.dialects.compound.dims import float_type_of
from comet.passes.graph.emitter import Emitter
from comet.passes.graph.stream.form import (
    Chunks,
    IterArgs,
    Statistics,
    map_users,
    needed,
)
from comet.passes.graph.stream.softmax import SoftmaxForm, chunk_terms, rescaled


class AttentionForm(SoftmaxForm):
    """The iter_args are m, l and o, the sum of exp(x - m) v."""

    name = "softmax times a matrix"
    iter_args = ("m", "l", "o")
    inputs = ("x", "v")

    def match(self, first: ReduceOp, dim: str) -> Statistics | None:
        """Match softmax statistics, div, and the contraction of the quotient."""
        found = super().match(first, dim)
        if found is None:
            return None
        _, _, exp, total = found.ops
        for div in map_users(exp.results[0], MapKind.DIV):
            if tuple(div.inputs) != (exp.results[0], total.results[0]):
                continue
            for ops in _contractions(div.result, dim):
                product = ops[-1]
                if needed(product.rhs, {first.result}) is not None:
                    continue
                replaced = (*found.replaced, product.result)
                inputs = (*found.inputs, product.rhs)
                return Statistics(self, inputs, replaced, (*found.ops, div, *ops))
        return None

    def init(self, emit: Emitter, found: Statistics) -> IterArgs:
        """Return m = the lowest finite number, l = 0 and o = 0."""
        product = found.ops[-1].results[0]
        nothing = emit.fill_like(0.0, product, name="nothing")
        return *super().init(emit, found), nothing

    def step(self, emit: Emitter, dim: str, chunks: Chunks, now: IterArgs) -> IterArgs:
        """Update m, rescale l and o, and add the chunk's terms, and terms times v."""
        x, v = chunks
        m, terms = chunk_terms(emit, dim, x, now[0])
        added = emit.reduce(ReduceKind.ADD, terms, dim, name="added")
        weights = emit.cast(terms, float_type_of(v), name="weights")
        product = emit.contract(weights, v, dim, float_type_of(now[2]), name="ev")
        total, mean = rescaled(emit, now[0], m, now[1], now[2])
        l_new = emit.map(MapKind.ADD, total, added, name="l")
        return m, l_new, emit.map(MapKind.ADD, mean, product, name="o")

    def results(self, emit: Emitter, last: IterArgs) -> IterArgs:
        """Return m, l and the quotient o / l."""
        m, total, o = last
        divisor = emit.cast(total, float_type_of(o), name="l")
        return m, total, emit.map(MapKind.DIV, o, divisor, name="mean")


def _contractions(
    weights: SSAValue, dim: str
) -> Iterator[tuple[ContractOp] | tuple[CastOp, ContractOp]]:
    """Yield the products of `weights`, cast or not, that sum only over `dim`."""
    for user in [use.operation for use in weights.uses]:
        if isinstance(user, CastOp):
            for (product,) in _products(user.result, dim):
                yield user, product
    yield from _products(weights, dim)


def _products(weights: SSAValue, dim: str) -> Iterator[tuple[ContractOp]]:
    for user in [use.operation for use in weights.uses]:
        if isinstance(user, ContractOp) and user.lhs is weights:
            if user.contracted == (dim,) and user.rhs is not weights:
                yield (user,)
