"""What the blocks of `sample_blocks` compute, in numpy, from arguments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, pi, sqrt
from typing import TypeAlias

import numpy as np

from comet.interpreter.tensor import Array

Values: TypeAlias = Mapping[str, Array]


def einsum(axes: str, *operands: Array) -> Array:
    """Do what `np.einsum` does, whose overloads take long to check at each call."""
    return np.einsum(axes, *operands)


def rms(x: Array, gain: Array) -> Array:
    """Return RMSNorm over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gain


def layer(x: Array, gain: Array, bias: Array) -> Array:
    """Return LayerNorm over the last axis."""
    scale = np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
    return (x - np.mean(x, axis=-1, keepdims=True)) / scale * gain + bias


def softmax(x: Array) -> Array:
    """Return softmax over the last axis."""
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def seen(scores: Array, causal: bool) -> Array:
    """Hide the keys behind each query, if asked."""
    hidden = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
    return np.where(hidden, -np.inf, scores) if causal else scores


def turned(one: Array, two: Array, cos: Array, sin: Array) -> Array:
    """Return the two halves of vectors, turned by angles, one behind the other."""
    return np.concatenate([one * cos - two * sin, two * cos + one * sin], axis=-1)


def swiglu(h: Array, v: Values) -> Array:
    """Return the gated MLP."""
    gate = h @ v["w1"]
    return (gate / (1 + np.exp(-gate)) * (h @ v["w3"])) @ v["w2"]


def llama(v: Values) -> Array:
    """A block of Llama."""
    h = rms(v["x"], v["h1_g"])
    q1, q2 = (einsum("md,dkre->krme", h, v[name]) for name in ("wq1", "wq2"))
    k1, k2 = (einsum("nd,dke->kne", h, v[name]) for name in ("wk1", "wk2"))
    q = turned(q1, q2, v["cos"], v["sin"])
    k = turned(k1, k2, v["cos"], v["sin"])
    values = einsum("nd,dkg->kng", h, v["wv"])
    scores = einsum("krme,kne->krmn", q, k) / sqrt(q.shape[-1])
    mixed = einsum("krmn,kng->krmg", softmax(seen(scores, causal=True)), values)
    y = v["x"] + einsum("krmg,krgd->md", mixed, v["wo"])
    return y + swiglu(rms(y, v["h2_g"]), v)


def llama_decode(v: Values) -> Array:
    """A block of Llama, for the last token of sequences whose other keys are cached."""
    k1, k2, own = decoded(v)
    h = rms(v["x"], v["h1_g"])
    cos, sin = v["cos"][:, None, None], v["sin"][:, None, None]
    q1, q2 = (einsum("bd,dkre->bkre", h, v[name]) for name in ("wq1", "wq2"))
    q = turned(q1, q2, cos, sin)
    cached = np.concatenate([v["keys1"], v["keys2"]], axis=-1)
    k = with_own(cached, np.concatenate([k1, k2], axis=-1))
    values = with_own(v["values"], own)
    scores = einsum("bkre,bkne->bkrn", q, k) / sqrt(q.shape[-1])
    mixed = einsum("bkrn,bkng->bkrg", softmax(scores), values)
    y = v["x"] + einsum("bkrg,krgd->bd", mixed, v["wo"])
    return y + swiglu(rms(y, v["h2_g"]), v)


def with_own(cached: Array, own: Array) -> Array:
    """Add a token's vectors `own`<K, B, E> to `cached`<B, K, N, E>, as the last."""
    return np.concatenate([cached, own.swapaxes(0, 1)[:, :, None]], axis=2)


def decoded(v: Values) -> list[Array]:
    """Return the two halves of a token's keys, and its values."""
    h = rms(v["x"], v["h1_g"])
    k1, k2 = (einsum("bd,dke->kbe", h, v[name]) for name in ("wk1", "wk2"))
    keys = turned(k1, k2, v["cos"], v["sin"])
    return [*np.split(keys, 2, axis=-1), einsum("bd,dkg->kbg", h, v["wv"])]


def normed(v: Values, gelu: Callable[[Array], Array], causal: bool) -> Array:
    """A block with LayerNorms, biases and a MLP of two products."""
    h = layer(v["x"], v["h1_g"], v["h1_b"])
    q, k, values = (
        einsum("md,dhe->hme", h, v[f"w_{name}"]) + v[f"b_{name}"][:, None]
        for name in "qkv"
    )
    scores = einsum("hme,hne->hmn", q, k) / sqrt(q.shape[-1])
    mixed = einsum("hmn,hng->hmg", softmax(seen(scores, causal)), values)
    y = v["x"] + einsum("hmg,hgd->md", mixed, v["w_a"]) + v["b_a"]
    wide = gelu(layer(y, v["h2_g"], v["h2_b"]) @ v["w_wide"] + v["b_wide"])
    return y + wide @ v["w_d"] + v["b_d"]


def gpt2(v: Values) -> Array:
    """A block of GPT-2."""

    def gelu(x: Array) -> Array:
        return x / 2 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))

    return normed(v, gelu, causal=True)


def vit(v: Values) -> Array:
    """A block of a vision transformer."""

    def gelu(x: Array) -> Array:
        return x / 2 * (1 + np.vectorize(erf)(x * sqrt(0.5)))

    return normed(v, gelu, causal=False)


def experts(v: Values) -> Array:
    """Experts with slots: each token's results, by the share of the expert."""
    x, sent = v["x"], v["sent"]
    shares = softmax(x @ v["wr"])
    y = x.copy()
    for expert in range(sent.shape[1]):
        weights = {name: v[name][expert] for name in ("w1", "w2", "w3")}
        made = swiglu(sent[:, expert].T @ x, weights)
        y += shares[:, expert, None] * (sent[:, expert] @ made)
    return y


def parallel_mlp(v: Values) -> Array:
    """RMSNorm, gated MLP and residual."""
    return v["x"] + swiglu(rms(v["x"], v["h_g"]), v)


FORMULAS: Mapping[str, Callable[[Values], Array]] = {
    "llama": llama,
    "llama_decode": llama_decode,
    "gpt2": gpt2,
    "vit": vit,
    "experts": experts,
    "parallel_mlp": parallel_mlp,
}
"""The result of each block."""

FURTHER: Mapping[str, Callable[[Values], list[Array]]] = {"llama_decode": decoded}
"""What some blocks return besides."""
