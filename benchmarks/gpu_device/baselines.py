"""
What a user of torch would run instead of a kernel of comet's.

Formulas are those of `references`, in the element type of the operands, as a model
would write them.
"""

# The types of torch.compile name unknown ones.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import TypeAlias

import torch
from gpu_run.case import Baselines
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpu_device.references import EPSILON

Formula: TypeAlias = Callable[..., Tensor]
"""The operands in, the result out."""


@dataclass(frozen=True)
class Baseline:
    """One alternative: what launches it once, or why it is missing."""

    name: str
    work: Callable[[], Tensor] | None
    """Enqueues one launch and returns its result; it ran already."""
    missing: str = ""
    """One sentence, where there is no work."""
    partial: bool = False
    """Whether it does a part of the op alone, so that its result is another."""
    own_graph: bool = False
    """Whether it replays a CUDA graph of its own, and cannot be captured in another."""


def gemm(a: Tensor, b: Tensor) -> Tensor:
    """Return a b, by cuBLAS."""
    return a @ b


def gemm_softmax(a: Tensor, b: Tensor) -> Tensor:
    """Return the softmax of a b along N."""
    return torch.softmax(a @ b, -1)


def gemm_layernorm(a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Return LayerNorm of a b along N."""
    return functional.layer_norm(a @ b, [b.shape[1]], gamma, beta, EPSILON)


def gemm_rmsnorm(a: Tensor, b: Tensor, gamma: Tensor) -> Tensor:
    """Return RMSNorm of a b along N."""
    return functional.rms_norm(a @ b, [b.shape[1]], gamma, EPSILON)


def gemm_gelu(a: Tensor, b: Tensor) -> Tensor:
    """Return GELU of a b, in the form with tanh."""
    return functional.gelu(a @ b, approximate="tanh")


def gated_mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Return (silu(x gate) * (x up)) down."""
    return (functional.silu(x @ gate) * (x @ up)) @ down


def first_product(a: Tensor, b: Tensor, *others: Tensor) -> Tensor:
    """Return a b, and leave what comes after it."""
    return a @ b


def three_products(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Multiply x gate, x up, and the first of them with down."""
    opening, _ = x @ gate, x @ up
    return opening @ down


@dataclass(frozen=True)
class Formulas:
    """An op by torch, and its products alone; None where it is nothing else."""

    whole: Formula
    products: Formula | None = first_product


FORMULAS: Mapping[str, Formulas] = {
    "gemm": Formulas(gemm, None),
    "ag_gemm": Formulas(gemm, None),
    "gemm_all_reduce": Formulas(gemm, None),
    "gemm_reduce_scatter": Formulas(gemm, None),
    "gemm_softmax": Formulas(gemm_softmax),
    "gemm_layernorm": Formulas(gemm_layernorm),
    "gemm_rmsnorm": Formulas(gemm_rmsnorm),
    "gemm_gelu": Formulas(gemm_gelu),
    "gated_mlp": Formulas(gated_mlp, three_products),
}
"""The ops on matrices; of several ranks, what they compute together."""

MODES = {"compile": "max-autotune-no-cudagraphs", "compile_graph": "max-autotune"}
"""
Modes of `torch.compile`. The first is what to time by events and to capture; the second
replays a graph of its own, into whose memory it first copies the operands.
"""

BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
"""Back ends of `scaled_dot_product_attention`."""

LONGEST = 300
"""Characters of what torch raises that are kept: the cause comes first."""

ROWS = "_rows"
"""
How baselines of decode end that take the queries of a key head as rows of one head;
the others say `enable_gqa`.
"""


def names(kind: str) -> tuple[str, ...]:
    """
    Return the baselines of an op, the most important first.

    Of ops on matrices: compile, eager, product (by cuBLAS, partial; eager where the op
    is one product) and compile_graph. Of attention: cudnn, flash, efficient; of decode
    also the same with `ROWS`. Raises `ValueError` for an unknown kind.
    """
    if kind in FORMULAS:
        product = ("product",) if FORMULAS[kind].products else ()
        return ("compile", "eager", *product, "compile_graph")
    if kind in ("attention", "attention_causal"):
        return tuple(BACKENDS)
    if kind == "flash_decode":
        return (*BACKENDS, *(f"{name}{ROWS}" for name in BACKENDS))
    raise ValueError(f"no baselines for {kind}")


def baseline(name: str, kind: str, inputs: Sequence[Tensor]) -> Baseline:
    """
    Prepare one baseline: compile it where it has to be, and run it.

    Whatever torch raises is why it is missing. Of `flash_decode` the lengths are read
    here: a mask hides the other keys where there are any. Raises `ValueError` for
    another name than those of `names`.
    """
    if name not in names(kind):
        others = ", ".join(names(kind))
        raise ValueError(f"no baseline {name} for {kind}; there are {others}")
    part, own_graph = name == "product", name == "compile_graph"
    if name in MODES and not inputs[0].is_cuda:
        return Baseline(name, None, "torch.compile is compared on GPUs only")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            work = _work(name, kind, inputs)
            for _ in range(3):  # a graph is captured in the second run
                work()
            if inputs[0].is_cuda:
                torch.cuda.synchronize()
        except Exception as error:
            said = [str(warning.message) for warning in warned]
            return Baseline(name, None, reason(error, said), part, own_graph)
    return Baseline(name, work, "", part, own_graph)


def baselines(
    kind: str, inputs: Sequence[Tensor], wanted: Baselines = "all"
) -> dict[str, Baseline]:
    """Prepare the wanted baselines of an op, by name; missing ones say why."""
    taken = {"none": (), "quick": (False,), "compiled": (True,), "all": (False, True)}
    found = (name for name in names(kind) if (name in MODES) in taken[wanted])
    return {name: baseline(name, kind, inputs) for name in found}


def reason(error: Exception, warned: Sequence[str]) -> str:
    """
    Return in one line why torch cannot do something.

    Where no back end of attention fits, warnings say why; those about back ends that
    were not asked for are left out.
    """
    useful = [
        re.sub(r"\s*\(Triggered internally.*", "", text, flags=re.DOTALL)
        for text in warned
        if "attention" in text.lower() or "backend" in text.lower()
        if "not used because" not in text and "runtime disabled" not in text
    ]
    said = " ".join(str(error).split()) or type(error).__name__
    return "; ".join([said[:LONGEST], *useful])


def _work(name: str, kind: str, inputs: Sequence[Tensor]) -> Callable[[], Tensor]:
    if kind in FORMULAS:
        return partial(_formula(name, FORMULAS[kind]), *inputs)
    backend = BACKENDS[name.removesuffix(ROWS)]
    if kind == "flash_decode":
        return _decode(backend, inputs, rows=name.endswith(ROWS))
    return _attention(backend, inputs, causal=kind == "attention_causal")


def _formula(name: str, formulas: Formulas) -> Formula:
    if name in MODES:
        own = with_own_code(formulas.whole)
        return torch.compile(own, mode=MODES[name], dynamic=False)
    if name == "product" and formulas.products is not None:
        return formulas.products
    return formulas.whole


def with_own_code(formula: Formula) -> Formula:
    """
    Return the same function with a code object of its own.

    `torch.compile` counts by code object how often it compiled, for all shapes, and
    after eight times runs a function as it is.
    """
    assert isinstance(formula, FunctionType)
    code = formula.__code__.replace(co_name=f"{formula.__name__}_{next(_COPIES)}")
    return FunctionType(code, formula.__globals__)


_COPIES = itertools.count()


def _attention(
    backend: SDPBackend, inputs: Sequence[Tensor], *, causal: bool
) -> Callable[[], Tensor]:
    """
    Return attention by one back end.

    torch aligns `is_causal` at the first key, comet at the last: where queries and keys
    are not as many, a mask says it.
    """
    q, k, v = inputs
    queries, keys = q.shape[2], k.shape[2]
    aligned = queries == keys
    mask = None
    if causal and not aligned:
        mask = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        mask = mask.tril(keys - queries)

    def work() -> Tensor:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=causal and aligned
            )

    return work


def _decode(
    backend: SDPBackend, inputs: Sequence[Tensor], *, rows: bool
) -> Callable[[], Tensor]:
    """Return attention of (B, H, G) queries to the first keys, by one back end."""
    q, k, v, lens = inputs
    (batch, heads, group, size), keys = q.shape, k.shape[2]
    queries = q if rows else q.reshape(batch, heads * group, 1, size)
    mask = None
    if bool((lens < keys).any()):
        there = torch.arange(keys, device=q.device) < lens[:, None]
        mask = there[:, None, None, :]

    def work() -> Tensor:
        with sdpa_kernel(backend):
            result = functional.scaled_dot_product_attention(
                queries, k, v, attn_mask=mask, enable_gqa=not rows
            )
        return result.reshape(batch, heads, group, v.shape[3])

    return work
