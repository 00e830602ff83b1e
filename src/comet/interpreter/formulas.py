"""What the named compound ops compute, by their textbook formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound.attention import AttentionOp, FlashDecodeOp
from comet.dialects.compound.gemm import AgGemmOp, ExpertGemmOp, GemmOp
from comet.dialects.compound.named import (
    CompoundOp,
    GatedMlpOp,
    GemmBiasReluOp,
    GemmGeluOp,
    GemmGemmOp,
    GemmLayernormOp,
    GemmRmsnormOp,
    GemmSiluOp,
    GemmSoftmaxOp,
    NormalisingOp,
)
from comet.dialects.compound.scan import SsmScanOp
from comet.interpreter.machine import Machine, Values, dims_of, evaluate
from comet.interpreter.tensor import Array, Tensor


@evaluate.register
def _(op: CompoundOp, machine: Machine, args: Values) -> Values:
    meaning = MEANINGS.get(type(op))
    if meaning is None:
        raise InterpretationError(f"'{op.name}' op has no meaning in the interpreter")
    data = meaning(op, *(value.data for value in args))
    return (Tensor((), dims_of(op.result.type), data),)


def _gemm(op: CompoundOp, a: Array, b: Array) -> Array:
    return a @ b


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _gemm_softmax(op: CompoundOp, a: Array, b: Array) -> Array:
    return _softmax(a @ b)


def _gemm_layernorm(
    op: CompoundOp, a: Array, b: Array, gamma: Array, beta: Array
) -> Array:
    product = a @ b
    centred = product - product.mean(axis=-1, keepdims=True)
    variance = product.var(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + _epsilon(op)) * gamma + beta


def _gemm_rmsnorm(op: CompoundOp, a: Array, b: Array, gamma: Array) -> Array:
    product = a @ b
    square = np.mean(product**2, axis=-1, keepdims=True)
    return product / np.sqrt(square + _epsilon(op)) * gamma


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _gemm_gelu(op: CompoundOp, a: Array, b: Array) -> Array:
    return _gelu(a @ b)


def _gemm_silu(op: CompoundOp, a: Array, b: Array) -> Array:
    return _silu(a @ b)


def _gemm_bias_relu(op: CompoundOp, a: Array, b: Array, bias: Array) -> Array:
    return np.maximum(a @ b + bias, 0)


def _gemm_gemm(op: CompoundOp, a: Array, b: Array, c: Array) -> Array:
    return a @ b @ c


def _gated_mlp(op: CompoundOp, x: Array, gate: Array, up: Array, down: Array) -> Array:
    return (_silu(x @ gate) * (x @ up)) @ down


def _attention(op: CompoundOp, q: Array, k: Array, v: Array) -> Array:
    assert isinstance(op, AttentionOp)
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if op.causal is not None:
        queries, keys = scores.shape[-2:]
        seen = np.tri(queries, keys, keys - queries, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    return _softmax(scores) @ v


def _flash_decode(op: CompoundOp, q: Array, k: Array, v: Array, lens: Array) -> Array:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    positions: Array = np.arange(k.shape[2], dtype=np.float64)
    there = positions < lens[:, None, None, None]
    return _softmax(np.where(there, scores, -np.inf)) @ v


def _ssm_scan(op: CompoundOp, x: Array, log_a: Array, b: Array, c: Array) -> Array:
    state = np.zeros((x.shape[0], b.shape[2], x.shape[2]))
    out = np.zeros_like(x)
    for t in range(x.shape[1]):
        state *= np.exp(log_a[:, t, None, None])
        state += b[:, t, :, None] * x[:, t, None, :]
        out[:, t] = np.einsum("hs,hsd->hd", c[:, t], state)
    return out


def _epsilon(op: CompoundOp) -> float:
    assert isinstance(op, NormalisingOp)
    return op.epsilon.value.data


MEANINGS: dict[type[CompoundOp], Callable[..., Array]] = {
    AgGemmOp: _gemm,
    AttentionOp: _attention,
    ExpertGemmOp: _gemm,
    FlashDecodeOp: _flash_decode,
    GatedMlpOp: _gated_mlp,
    GemmBiasReluOp: _gemm_bias_relu,
    GemmGeluOp: _gemm_gelu,
    GemmGemmOp: _gemm_gemm,
    GemmLayernormOp: _gemm_layernorm,
    GemmOp: _gemm,
    GemmRmsnormOp: _gemm_rmsnorm,
    GemmSiluOp: _gemm_silu,
    GemmSoftmaxOp: _gemm_softmax,
    SsmScanOp: _ssm_scan,
}
"""The function of each named op: the op and the arrays of its operands."""
