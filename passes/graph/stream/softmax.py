"""
Softmax statistics: the row maximum m and the sum l of exp(x - m).

The running form rescales l whenever m grows (Milakov and Gimelshein, "Online normalizer
calculation for softmax").
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind, ReduceKind, ReduceOp
from comet.dialects.compound.dims import float_type_of
from comet.dialects.compound.map import lowest_finite
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


class SoftmaxForm(StreamForm):
    """The iter_args are m and l."""

    name = "softmax statistics"
    iter_args = ("m", "l")

    def match(self, first: ReduceOp, dim: str) -> Statistics | None:
        """Match reduce max, sub, exp and reduce add."""
        if not is_reduction(first, ReduceKind.MAX, dim):
            return None
        for sub in map_users(first.result, MapKind.SUB):
            if tuple(sub.inputs) != (first.input, first.result):
                continue
            for exp in map_users(sub.result, MapKind.EXP):
                for total in sums_over(exp.result, dim):
                    replaced = (first.result, total.result)
                    ops = (first, sub, exp, total)
                    return Statistics(self, (first.input,), replaced, ops)
        return None

    def init(self, emit: Emitter, found: Statistics) -> IterArgs:
        """Return m = the lowest finite number and l = 0."""
        row, total = found.ops[0].results[0], found.ops[3].results[0]
        lowest = lowest_finite(float_type_of(row))
        low = emit.fill_like(lowest, row, name="low")
        return low, emit.fill_like(0.0, total, name="zero")

    def step(self, emit: Emitter, dim: str, chunks: Chunks, now: IterArgs) -> IterArgs:
        """Update m to the maximum of the chunk, rescale l and add the chunk's terms."""
        m, terms = chunk_terms(emit, dim, chunks[0], now[0])
        added = emit.reduce(ReduceKind.ADD, terms, dim, name="added")
        sums = rescaled(emit, now[0], m, now[1])
        return m, emit.map(MapKind.ADD, *sums, added, name="l")

    def merge(self, emit: Emitter, one: IterArgs, other: IterArgs) -> IterArgs:
        """Rescale all sums to the larger maximum; an empty partial's sums are 0."""
        m = emit.map(MapKind.MAX, one[0], other[0], name="m")
        left, right = (rescaled(emit, part[0], m, *part[1:]) for part in (one, other))
        sums = zip(left, right, self.iter_args[1:], strict=True)
        return m, *(emit.map(MapKind.ADD, a, b, name=name) for a, b, name in sums)

    def join(self, emit: Emitter, dim: str, sets: IterArgs) -> IterArgs:
        """Rescale all sums to the largest maximum and add them."""
        m = emit.reduce(ReduceKind.MAX, sets[0], dim, name="top")
        terms = rescaled(emit, sets[0], m, *sets[1:])
        return m, *(emit.reduce(ReduceKind.ADD, t, dim, name="added") for t in terms)


def chunk_terms(
    emit: Emitter, dim: str, chunk: SSAValue, old: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Return the maximum of `old` and a chunk, and exp(x - that) of the chunk."""
    top = emit.reduce(ReduceKind.MAX, chunk, dim, name="top")
    m = emit.map(MapKind.MAX, old, top, name="m")
    below = emit.map(MapKind.SUB, chunk, m, name="s")
    return m, emit.map(MapKind.EXP, below, name="e")


def rescaled(
    emit: Emitter, old: SSAValue, m: SSAValue, *sums: SSAValue
) -> list[SSAValue]:
    """
    Return sums of exp(x - old) as sums of exp(x - m).

    A sum may have another element type than the maximum: that of a product.
    """
    fall = emit.map(MapKind.SUB, old, m, name="fall")
    scale = emit.map(MapKind.EXP, fall, name="scale")
    scales = [emit.cast(scale, float_type_of(total), name="scale") for total in sums]
    return [
        emit.map(MapKind.MULT, total, factor, name="kept")
        for total, factor in zip(sums, scales, strict=True)
    ]
