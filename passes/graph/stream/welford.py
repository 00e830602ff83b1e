"""
Mean and variance: the count n, the mean, and the sum M2 of squared deviations from it.

The running form merges the statistics of two sets (Chan, Golub and LeVeque, "Updating
formulae and a pairwise algorithm for computing sample variances").
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind, MapOp, ReduceKind, ReduceOp
from comet.dialects.compound.dims import extents_of, float_type_of
from comet.dialects.compound.map import constant_of
from comet.passes.graph.emitter import Emitter
from comet.passes.graph.stream.form import (
    Chunks,
    IterArgs,
    Statistics,
    StreamForm,
    is_reduction,
    map_users,
    sums_over,
)


class WelfordForm(StreamForm):
    """The iter_args are n (rank 0), mean and M2."""

    name = "mean and variance"
    iter_args = ("n", "mean", "m2")
    counts = True

    def match(self, first: ReduceOp, dim: str) -> Statistics | None:
        """Match reduce add, mult by 1/N, sub, square and reduce add."""
        if not is_reduction(first, ReduceKind.ADD, dim):
            return None
        for mean in _means(first, dim):
            for sub in map_users(mean.result, MapKind.SUB):
                if tuple(sub.inputs) != (first.input, mean.result):
                    continue
                for square in _squares(sub.result):
                    for total in sums_over(square.result, dim):
                        replaced = (None, mean.result, total.result)
                        ops = (first, mean, sub, square, total)
                        return Statistics(self, (first.input,), replaced, ops)
        return None

    def init(self, emit: Emitter, found: Statistics) -> IterArgs:
        """Return n = 0, mean = 0 and M2 = 0."""
        _, mean, _, _, total = (op.results[0] for op in found.ops)
        count = emit.fill(0.0, float_type_of(mean), name="count")
        zero = same = emit.fill_like(0.0, mean, name="zero")
        if total.type != mean.type:
            same = emit.fill_like(0.0, total, name="zero")
        return count, zero, same

    def step(self, emit: Emitter, dim: str, chunks: Chunks, now: IterArgs) -> IterArgs:
        """Merge the statistics of the chunk, which has its real number of elements."""
        (chunk,) = chunks
        count = emit.extent(dim, chunk, name="count")
        total = emit.reduce(ReduceKind.ADD, chunk, dim, name="sum")
        mean = emit.map(MapKind.DIV, total, _at_least_one(emit, count), name="mean")
        centred = emit.map(MapKind.SUB, chunk, mean, name="centred")
        square = emit.map(MapKind.MULT, centred, centred, name="square")
        squares = emit.reduce(ReduceKind.ADD, square, dim, name="squares")
        return self.merge(emit, now, (count, mean, squares))

    def merge(self, emit: Emitter, one: IterArgs, other: IterArgs) -> IterArgs:
        """
        Return n + n', the common mean, and M2 + M2' + d^2 n n' / (n + n').

        d is the distance of the means; two empty sets give zeros.
        """
        n = emit.map(MapKind.ADD, one[0], other[0], name="n")
        fraction = emit.map(
            MapKind.DIV, other[0], _at_least_one(emit, n), name="fraction"
        )
        distance = emit.map(MapKind.SUB, other[1], one[1], name="distance")
        shift = emit.map(MapKind.MULT, distance, fraction, name="shift")
        mean = emit.map(MapKind.ADD, one[1], shift, name="mean")
        weight = emit.map(MapKind.MULT, one[0], fraction, name="weight")
        between = emit.map(MapKind.MULT, distance, distance, name="between")
        m2_between = emit.map(MapKind.MULT, between, weight, name="m2_between")
        m2_within = emit.map(MapKind.ADD, one[2], other[2], name="m2_within")
        return n, mean, emit.map(MapKind.ADD, m2_within, m2_between, name="m2")

    def join(self, emit: Emitter, dim: str, sets: IterArgs) -> IterArgs:
        """Return the total count, its mean, and M2 of all sets around that mean."""
        n = emit.reduce(ReduceKind.ADD, sets[0], dim, name="count")
        sums = emit.map(MapKind.MULT, sets[1], sets[0], name="sums")
        total = emit.reduce(ReduceKind.ADD, sums, dim, name="sum")
        mean = emit.map(MapKind.DIV, total, _at_least_one(emit, n), name="mean")
        distance = emit.map(MapKind.SUB, sets[1], mean, name="distance")
        between = emit.map(MapKind.MULT, distance, distance, name="between")
        m2_between = emit.map(MapKind.MULT, between, sets[0], name="m2_between")
        m2_within = emit.map(MapKind.ADD, sets[2], m2_between, name="m2_within")
        return n, mean, emit.reduce(ReduceKind.ADD, m2_within, dim, name="squares")


def _means(total: ReduceOp, dim: str) -> Iterator[MapOp]:
    """Yield the products of a row sum with 1 / (number of elements in the row)."""
    fraction = 1 / extents_of(total.input)[dim]
    for product in map_users(total.result, MapKind.MULT):
        for factor in product.inputs:
            constant = constant_of(factor)
            if constant is not None and isclose(constant, fraction, rel_tol=1e-12):
                yield product


def _squares(value: SSAValue) -> Iterator[MapOp]:
    for product in map_users(value, MapKind.MULT):
        if tuple(product.inputs) == (value, value):
            yield product


def _at_least_one(emit: Emitter, count: SSAValue) -> SSAValue:
    """Return `count`, or 1 for none, so that a quotient 0 / count stays 0."""
    one = emit.fill_like(1.0, count, name="one")
    return emit.map(MapKind.MAX, count, one, name="divisor")
