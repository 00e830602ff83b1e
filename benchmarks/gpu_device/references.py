"""
What the timed kernels compute, by torch in float32 without TF32, in blocks of rows.

Operands and results are those of the named ops in docs/ops.md; of several ranks they
are the whole ones, so that AG+GEMM, GEMM + all-reduce and GEMM + reduce-scatter are
all the plain product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from comet.runtime.check import CheckResult, tolerance
from comet.runtime.program import Tensor as Described

Formula: TypeAlias = Callable[..., Tensor]
"""Operands of float32 in, the result out; `epsilon` is what normalising ops add."""

ROWS = 4096
"""Rows of a product that are computed at a time."""

SCORES = 2**28
"""Scores of attention, in elements, that are computed at a time: 1 GiB."""

EPSILON = 1e-5
"""What normalising ops add to a variance by default."""


@contextmanager
def full_precision() -> Iterator[None]:
    """Let products of float32 be exact to float32: no TF32 and no bf16 in parts."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def reference(
    kind: str, inputs: Sequence[Tensor], *, epsilon: float = EPSILON
) -> Tensor:
    """
    Return what the op `kind` gives for these inputs, in float32 on their device.

    Raises `ValueError` for a kind that is not in `KINDS`.
    """
    raise NotImplementedError


def compared(
    result: Tensor, expected: Tensor, output: Described, terms: int, seconds: float
) -> CheckResult:
    """Return how far a result is from its reference, judged on their device."""
    raise NotImplementedError


KINDS: Mapping[str, Formula] = {}
"""
gemm, ag_gemm, gemm_all_reduce, gemm_reduce_scatter, gemm_softmax, gemm_layernorm,
gemm_rmsnorm, gemm_gelu, gated_mlp, attention, attention_causal, flash_decode.
"""
