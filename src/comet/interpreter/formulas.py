"""
The textbook formulas of the named compound ops.

The function for an op has the op's name. It takes the op and the arrays of its
operands, and returns that of its result.
"""

from __future__ import annotations

import numpy as np

from comet.dialects.compound.named import CompoundOp
from comet.dialects.compound.named.attention import AttentionOp
from comet.dialects.compound.named.normalize import NormalizingOp
from comet.interpreter.tensor import Array


def gemm(op: CompoundOp, a: Array, b: Array) -> Array:
    """Return a b, for each batch entry."""
    return a @ b


ag_gemm = expert_gemm = gemm


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def gemm_softmax(op: CompoundOp, a: Array, b: Array) -> Array:
    """Return softmax(a b) along N."""
    return _softmax(a @ b)


def gemm_layernorm(
    op: CompoundOp, a: Array, b: Array, gamma: Array, beta: Array
) -> Array:
    """Return LayerNorm(a b) along N, with the biased variance."""
    product = a @ b
    centred = product - product.mean(axis=-1, keepdims=True)
    variance = product.var(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + _epsilon(op)) * gamma + beta


def gemm_rmsnorm(op: CompoundOp, a: Array, b: Array, gamma: Array) -> Array:
    """Return RMSNorm(a b) along N."""
    product = a @ b
    square = np.mean(product**2, axis=-1, keepdims=True)
    return product / np.sqrt(square + _epsilon(op)) * gamma


def _sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)), exact for large |x| too."""
    return np.exp(-np.logaddexp(0, -x))


def _gelu(x: Array) -> Array:
    """Return x / 2 (1 + tanh(u)) as x sigmoid(2 u), which is exact for u < 0, too."""
    return x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def gemm_gelu(op: CompoundOp, a: Array, b: Array) -> Array:
    """Return GELU(a b), in the form with tanh."""
    return _gelu(a @ b)


def gemm_silu(op: CompoundOp, a: Array, b: Array) -> Array:
    """Return SiLU(a b)."""
    return _silu(a @ b)


def gemm_bias_relu(op: CompoundOp, a: Array, b: Array, bias: Array) -> Array:
    """Return max(a b + bias, 0)."""
    return np.maximum(a @ b + bias, 0)


def gemm_gemm(op: CompoundOp, a: Array, b: Array, c: Array) -> Array:
    """Return (a b) c."""
    return a @ b @ c


def gated_mlp(op: CompoundOp, x: Array, gate: Array, up: Array, down: Array) -> Array:
    """Return (silu(x gate) * (x up)) down."""
    return (_silu(x @ gate) * (x @ up)) @ down


def attention(op: CompoundOp, q: Array, k: Array, v: Array) -> Array:
    """
    Return softmax(q k^T / sqrt(D)) v; if causal, over the keys up to the query.

    Each head of keys and values serves a group of query heads.
    """
    assert isinstance(op, AttentionOp)
    if op.form == "grouped":
        k, v = k[:, :, None], v[:, :, None]
    elif op.form == "flat":
        group = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if op.causal is not None:
        queries, keys = scores.shape[-2:]
        seen = np.tri(queries, keys, keys - queries, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    return _softmax(scores) @ v


def flash_decode(op: CompoundOp, q: Array, k: Array, v: Array, lens: Array) -> Array:
    """Return the attention of each batch entry to its first `lens` keys."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    positions: Array = np.arange(k.shape[2], dtype=np.float64)
    there = positions < lens[:, None, None, None]
    return _softmax(np.where(there, scores, -np.inf)) @ v


def ssm_scan(op: CompoundOp, x: Array, log_a: Array, b: Array, c: Array) -> Array:
    """Return the outputs c h of h = exp(log_a) h + b x, over time."""
    state = np.zeros((x.shape[0], b.shape[2], x.shape[2]))
    out = np.zeros_like(x)
    for t in range(x.shape[1]):
        state *= np.exp(log_a[:, t, None, None])
        state += b[:, t, :, None] * x[:, t, None, :]
        out[:, t] = np.einsum("hs,hsd->hd", c[:, t], state)
    return out


def _epsilon(op: CompoundOp) -> float:
    assert isinstance(op, NormalizingOp)
    return op.epsilon.value.data
