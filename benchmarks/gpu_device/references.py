"""
What the timed kernels compute, by torch in float32 without TF32, in blocks of rows.

Operands and results are those of the named ops in docs/ops.md; of several ranks they
are the whole ones, so that AG+GEMM, GEMM + all-reduce and GEMM + reduce-scatter are
all the plain product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from comet.runtime.check import CheckResult, relative_error, tolerance
from comet.runtime.program import Tensor as Described

Formula: TypeAlias = Callable[..., Tensor]
"""Operands of any float type in, the result in float32 out."""

ROWS = 4096
"""Rows of a product that are computed at a time."""

SCORES = 2**28
"""Scores of attention that are computed at a time, in elements: 1 GiB."""

EPSILON = 1e-5
"""What normalizing ops add to a variance by default."""


@contextmanager
def full_precision() -> Generator[None]:
    """Let products of float32 be exact to float32, neither TF32 nor parts of bf16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def reference(kind: str, inputs: Sequence[Tensor]) -> Tensor:
    """
    Return what the op `kind` gives for these inputs, in float32 on their device.

    Raises `ValueError` for a kind that is not among `KINDS`.
    """
    if kind not in KINDS:
        raise ValueError(f"no reference for {kind}; there are {', '.join(KINDS)}")
    with full_precision(), torch.no_grad():
        return KINDS[kind](*inputs)


def compared(
    result: Tensor, expected: Tensor, output: Described, seconds: float
) -> CheckResult:
    """
    Return how far a result is from its reference, computed on their device.

    `seconds`: of the launch. Raises `ValueError` where the shapes differ.
    """
    if result.shape != expected.shape:
        shapes = tuple(result.shape), tuple(expected.shape)
        raise ValueError(f"a result has shape {shapes[0]}, its reference {shapes[1]}")
    error = relative_error(result, expected)
    return CheckResult(error, tolerance(output), seconds)


def in_rows(rows: Tensor, formula: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the formula of all rows, computed for blocks of them in float32."""
    starts = range(0, len(rows), ROWS)
    return torch.cat([formula(rows[at : at + ROWS].float()) for at in starts])


def gemm(a: Tensor, b: Tensor) -> Tensor:
    """Return a b."""
    return gemm_and(lambda product: product, a, b)


def gemm_and(then: Callable[[Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Return `then` of the rows of a b."""
    right = b.float()
    return in_rows(a, lambda rows: then(rows @ right))


def gemm_softmax(a: Tensor, b: Tensor) -> Tensor:
    """Return the softmax of a b along N."""
    return gemm_and(lambda product: torch.softmax(product, -1), a, b)


def gemm_layernorm(a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Return LayerNorm of a b along N, with the biased variance."""

    def normal(product: Tensor) -> Tensor:
        centred = product - product.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / (variance + EPSILON).sqrt() * gamma.float() + beta.float()

    return gemm_and(normal, a, b)


def gemm_rmsnorm(a: Tensor, b: Tensor, gamma: Tensor) -> Tensor:
    """Return a b over the root of its mean square along N."""

    def normal(product: Tensor) -> Tensor:
        square = product.square().mean(-1, keepdim=True)
        return product / (square + EPSILON).sqrt() * gamma.float()

    return gemm_and(normal, a, b)


def gemm_gelu(a: Tensor, b: Tensor) -> Tensor:
    """Return GELU of a b, in the form with tanh."""
    return gemm_and(lambda x: functional.gelu(x, approximate="tanh"), a, b)


def gated_mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Return (silu(x gate) * (x up)) down."""
    opening, wide, closing = gate.float(), up.float(), down.float()
    return in_rows(
        x, lambda rows: (functional.silu(rows @ opening) * (rows @ wide)) @ closing
    )


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return softmax(q k^T / sqrt(D)) v of each batch entry and head."""
    return _by_head(q, k, v, causal=False)


def attention_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention where query m sees the keys n <= m + N - M."""
    return _by_head(q, k, v, causal=True)


def flash_decode(q: Tensor, k: Tensor, v: Tensor, lens: Tensor) -> Tensor:
    """Return attention of each batch entry to its first lens[b] keys."""
    entries = [(b, int(lens[b])) for b in range(len(lens))]
    return torch.stack(
        [attention(q[b], k[b, :, :keys], v[b, :, :keys]) for b, keys in entries]
    )


def _by_head(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """Return attention over the last two axes, one index of the others at a time."""
    heads = zip(*(operand.flatten(0, -3) for operand in (q, k, v)), strict=True)
    results = torch.stack([_one_head(*head, causal=causal) for head in heads])
    return results.reshape(*q.shape[:-1], v.shape[-1])


def _one_head(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """Return the attention of M queries to N keys, in blocks of queries."""
    (queries, size), keys = q.shape, len(k)
    right, values = k.float().T / math.sqrt(size), v.float()
    blocks: list[Tensor] = []
    rows = max(1, SCORES // keys)
    for start in range(0, queries, rows):
        scores = q[start : start + rows].float() @ right
        if causal:
            seen = start + 1 + keys - queries  # by the first query of the block
            hidden = torch.ones_like(scores, dtype=torch.bool).triu(seen)
            scores.masked_fill_(hidden, -math.inf)
        blocks.append(torch.softmax(scores, -1) @ values)
    return torch.cat(blocks)


KINDS: Mapping[str, Formula] = {
    "gemm": gemm,
    "ag_gemm": gemm,
    "gemm_all_reduce": gemm,
    "gemm_reduce_scatter": gemm,
    "gemm_softmax": gemm_softmax,
    "gemm_layernorm": gemm_layernorm,
    "gemm_rmsnorm": gemm_rmsnorm,
    "gemm_gelu": gemm_gelu,
    "gated_mlp": gated_mlp,
    "attention": attention,
    "attention_causal": attention_causal,
    "flash_decode": flash_decode,
}
"""The reference of each timed op, by the names of the samples."""
