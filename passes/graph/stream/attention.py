"""
Softmax times a matrix: the row maximum m, the sum l of exp(x - m), and exp(x - m) v.

The running form of flash attention rescales l and o whenever m grows and divides once,
at the end (Dao et al., "FlashAttention", section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
)
from comet.dialects.compound.dims import float_type_of, names_of
from comet.passes.graph.emitter import Emitter
from comet.passes.graph.stream.form import (
    Chunks,
    IterArgs,
    Statistics,
    map_users,
    needed,
)
from comet.passes.graph.stream.softmax import SoftmaxForm, chunk_terms, rescaled


@dataclass(frozen=True)
class Weights:
    """The weights of an attention, by which a matrix is multiplied."""

    value: SSAValue
    factors: tuple[SSAValue, ...] = ()
    """The factors of the softmax quotient in the weights."""
    ops: tuple[Operation, ...] = ()
    """The products with these."""


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
            for weights in self.weights_of(div, dim):
                for ops in _contractions(weights.value, dim):
                    inputs = (ops[-1].rhs, *weights.factors)
                    if any(needed(v, {first.result}) is not None for v in inputs):
                        continue
                    replaced = (*found.replaced, ops[-1].result)
                    inputs = (*found.inputs, *inputs)
                    ops = (*found.ops, div, *weights.ops, *ops)
                    return Statistics(self, inputs, replaced, ops)
        return None

    def weights_of(self, div: MapOp, dim: str) -> Iterator[Weights]:
        """Yield the possible weights of a matrix: the quotient itself."""
        yield Weights(div.result)

    def init(self, emit: Emitter, found: Statistics) -> IterArgs:
        """Return m = the lowest finite number, l = 0 and o = 0."""
        product = found.ops[-1].results[0]
        nothing = emit.fill_like(0.0, product, name="nothing")
        return *super().init(emit, found), nothing

    def step(self, emit: Emitter, dim: str, chunks: Chunks, now: IterArgs) -> IterArgs:
        """Update m, rescale l and o, and add the chunk's terms, and terms times v."""
        x, v, *factors = chunks
        m, terms = chunk_terms(emit, dim, x, now[0])
        added = emit.reduce(ReduceKind.ADD, terms, dim, name="added")
        for factor in factors:
            terms = emit.map(MapKind.MULT, terms, factor, name="scaled")
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


class DropoutForm(AttentionForm):
    """
    The same, and weights are multiplied by factors before, but not in their sum l.

    So dropout in attention makes a part of the weights 0.
    """

    name = "softmax times factors times a matrix"
    inputs = ("x", "v", "factors")

    def weights_of(self, div: MapOp, dim: str) -> Iterator[Weights]:
        """Yield products of the quotient with values that have no other dimension."""
        for product in map_users(div.result, MapKind.MULT):
            one, other = product.inputs
            factors = other if one is div.result else one
            names = names_of(factors)
            if factors is not div.result and dim in names:
                if set(names) <= set(names_of(div.result)):
                    yield Weights(product.result, (factors,), (product,))


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
