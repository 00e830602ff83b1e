"""The translation of attention, forward and backward."""

from __future__ import annotations

from math import sqrt

from xdsl.dialects.builtin import f32, i1, i32

from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.emitter import View
from comet.pytorch.random_numbers import random_numbers, scale_of_kept
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer

HIDDEN = -(2.0**126)
"""
The score of a key that a query does not see: its weight is 0, and differences of two
such scores are numbers.
"""


@rule("aten.scaled_dot_product_attention")
def scaled_dot_product_attention(
    t: Tracer,
    out: Result,
    query: View,
    key: View,
    value: View,
    attn_mask: View | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
):
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    found = attention(t, out, query, key, value, attn_mask, is_causal, factor)
    return found[0]


@rule("comet.attention")
def attention(
    t: Tracer,
    out: Result,
    query: View,
    key: View,
    value: View,
    mask: View | None,
    causal: bool,
    scale: float,
    dropout: float = 0.0,
    seed: View | None = None,
) -> tuple[View, View]:
    """Return the result, and the logarithm of the sum of powers of each query."""
    key, value = _for_all_heads(t, query, key), _for_all_heads(t, query, value)
    scores = _scores(t, query, key, mask, causal, scale)
    top = t.reduce(ReduceKind.MAX, scores, (-1,), keep=True)
    powers = t.map(MapKind.EXP, t.map(MapKind.SUB, scores, top))
    total = t.reduce(ReduceKind.ADD, powers, (-1,), keep=True)
    factors = _factors(t, query, key, dropout, seed)
    weights = _times(t, t.map(MapKind.DIV, powers, total), factors)
    weights = t.cast(weights, value.tensor.element)
    logarithm = t.map(MapKind.ADD, top, t.map(MapKind.LOG, total))
    result = t.product(weights, value, out.element)
    if mask is not None:
        # Of a query that sees no key, the result is 0, and so are weights by this row
        # statistic. By a mask of scores, its powers are 0 or NaN.
        of_conditions = mask.tensor.element == i1
        least = (top, HIDDEN / 2) if of_conditions else (total, 0.0)
        sees = t.map(MapKind.GT, *least)
        result = t.map(MapKind.SELECT, sees, result, 0.0)
        logarithm = t.map(MapKind.SELECT, sees, logarithm, 0.0)
    return result, t.reshaped(logarithm, query.shape[:-1])


def _for_all_heads(t: Tracer, query: View, other: View) -> View:
    """
    Return keys or values for every head of queries, of which several share one.

    They are the same along the heads that share them: nothing is copied.
    """
    if len(other.axes) < 3 or other.shape[-3] == query.shape[-3]:
        return other
    *batch, heads, length, width = other.shape
    several = query.shape[-3] // heads
    one = t.reshaped(other, [*batch, heads, 1, length, width])
    each = t.expanded(one, [*batch, heads, several, length, width])
    return t.reshaped(each, [*batch, heads * several, length, width])


def _scores(
    t: Tracer, query: View, key: View, mask: View | None, causal: bool, scale: float
) -> View:
    """Return the scores of all keys, in f32, HIDDEN where a mask hides them."""
    scores = t.map(MapKind.MULT, t.product(query, _turned(t, key), f32), scale)
    if causal:
        rows, columns = (t.positions(n, i32) for n in scores.shape[-2:])
        rows = t.reshaped(rows, [*rows.shape, 1])
        seen = t.map(MapKind.GE, rows, columns)
        scores = t.map(MapKind.SELECT, seen, scores, HIDDEN)
    if mask is None:
        return scores
    if mask.tensor.element == i1:
        return t.map(MapKind.SELECT, mask, scores, HIDDEN)
    return t.map(MapKind.ADD, scores, t.cast(mask, f32))


def _factors(
    t: Tracer, query: View, key: View, dropout: float, seed: View | None
) -> View | None:
    """Return the factors of weights, of which a part is 0; None if there are none."""
    if seed is None:
        return None
    shape = (*query.shape[:-1], key.shape[-2])
    numbers = random_numbers(t, Result(shape, f32), seed, shape, len(shape) - 2)
    kept, larger = t.map(MapKind.GE, numbers, dropout), scale_of_kept(dropout)
    return t.map(MapKind.SELECT, kept, t.full((), larger, f32), 0.0)


def _times(t: Tracer, weights: View, factors: View | None) -> View:
    return weights if factors is None else t.map(MapKind.MULT, weights, factors)


def _turned(t: Tracer, view: View) -> View:
    """Return the transposes of matrices."""
    *batch, rows, columns = range(len(view.axes))
    return t.permuted(view, [*batch, columns, rows])


@rule("comet.attention_backward")
def attention_backward(
    t: Tracer,
    out: Result,
    grad: View,
    query: View,
    key: View,
    value: View,
    mask: View | None,
    result: View,
    statistic: View,
    causal: bool,
    scale: float,
    dropout: float = 0.0,
    seed: View | None = None,
):
    """Return the gradients of queries, keys and values; weights are computed again."""
    keys, values = _for_all_heads(t, query, key), _for_all_heads(t, query, value)
    scores = _scores(t, query, keys, mask, causal, scale)
    column = t.reshaped(statistic, [*statistic.shape, 1])
    weights = t.map(MapKind.EXP, t.map(MapKind.SUB, scores, column))
    element = query.tensor.element
    by_result = t.map(MapKind.MULT, t.cast(grad, f32), t.cast(result, f32))
    mean = t.reduce(ReduceKind.ADD, by_result, (-1,), keep=True)
    factors = _factors(t, query, key, dropout, seed)
    by_weight = _times(t, t.product(grad, _turned(t, values), f32), factors)
    by_weight = t.map(MapKind.SUB, by_weight, mean)
    by_score = t.map(MapKind.MULT, t.map(MapKind.MULT, weights, by_weight), scale)
    narrow = t.cast(by_score, element)
    weights = _times(t, weights, factors)
    return (
        t.product(narrow, keys, element),
        _of_shared(t, narrow, query, key),
        _of_shared(t, t.cast(weights, element), grad, value),
    )


def _of_shared(t: Tracer, by_score: View, other: View, shared: View) -> View:
    """Return the gradient of keys or values, a sum over the queries that share them."""
    if len(shared.axes) > 2:
        *batch, heads, _, _ = shared.shape
        several = other.shape[-3] // heads
        heads_of_queries = (*batch, heads, several)
        by_score = _rows_together(t, by_score, heads_of_queries)
        other = _rows_together(t, other, heads_of_queries)
    return t.product(_turned(t, by_score), other, shared.tensor.element)


def _rows_together(t: Tracer, view: View, batch: tuple[int, ...]) -> View:
    """Return matrices, of which those along the last axis of `batch` are one."""
    *outer, several = batch
    rows, columns = view.shape[-2:]
    return t.reshaped(view, [*outer, several * rows, columns])
