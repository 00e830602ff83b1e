"""The named compound ops that all tests of named ops run over, with their formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.dialects.compound import Compound
from comet.dialects.compound.named import CompoundOp
from comet.dialects.compound.named.attention import AttentionOp
from comet.interpreter.tensor import Array

Formula: TypeAlias = Callable[..., Array]


@dataclass(frozen=True)
class NamedOp:
    """One op: what it computes, and the sizes at which it is tested."""

    name: str
    expected: Formula
    """The result for the operands' arrays, written without comet."""
    odd: Mapping[str, int]
    """Extents that divide by nothing."""
    even: Mapping[str, int]
    """Extents that the accelerators can share."""
    attributes: str = ""
    """What is between the operands and the types."""
    variant: str = ""
    """What the sample is called beyond the op, if the op has several."""
    positions: bool = False
    """Whether it needs positions of elements, which accelerators do not know."""
    form: tuple[tuple[tuple[str, ...], ...], tuple[str, ...]] | None = None
    """The dimensions of operands and result, if not those that the class has."""
    viewed: tuple[str, ...] = ()
    """Dimensions that it views as two others, and computes nothing along."""
    factors: tuple[str, ...] = ()
    """Dimensions whose extent has to divide that of a viewed one."""

    @property
    def title(self) -> str:
        """What the sample of the op, and the function in it, is called."""
        return f"{self.name}_{self.variant}" if self.variant else self.name

    def text(self, extents: Mapping[str, int], element: str = "f16") -> str:
        """Return a function @main of this op on tensors of the given extents."""
        kind = self.kind
        types = [
            _type(dims, extents, "i32" if index in kind.LENGTHS else element)
            for index, dims in enumerate(self.operands)
        ]
        result = _type(self.result, extents, element)
        values = [f"%x{index}" for index in range(len(types))]
        parameters = zip(values, types, strict=True)
        return f"""
func.func @main({", ".join(f"{v}: {t}" for v, t in parameters)}) -> {result} {{
  %y = compound.{self.name} {", ".join(values)} {self.attributes}
    : ({", ".join(types)}) -> {result}
  func.return %y : {result}
}}
"""

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions that instances can share."""
        return tuple(dim for dim in self.odd if dim not in self.viewed)

    @property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """The dimensions of each operand."""
        return self.kind.OPERANDS if self.form is None else self.form[0]

    @property
    def result(self) -> tuple[str, ...]:
        """The dimensions of the result."""
        return self.kind.RESULT if self.form is None else self.form[1]

    @property
    def kind(self) -> type[CompoundOp]:
        """The class of the op."""
        kinds = (k for k in Compound.operations if issubclass(k, CompoundOp))
        return next(k for k in kinds if k.name == f"compound.{self.name}")


def _type(dims: Sequence[str], extents: Mapping[str, int], element: str) -> str:
    return f"tensor<{'x'.join(str(extents[dim]) for dim in dims)}x{element}>"


def softmax(x: Array) -> Array:
    """Return the softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gemm(a: Array, b: Array) -> Array:
    """Return a b, of each batch entry if there are several."""
    return np.einsum("...mk,...kn->...mn", a, b)


def gemm_softmax(a: Array, b: Array) -> Array:
    """Return softmax(a b) over the rows."""
    return softmax(a @ b)


def layernorm(a: Array, b: Array, gamma: Array, beta: Array) -> Array:
    """Return LayerNorm(a b) over the rows, with numpy's biased variance."""
    c = a @ b
    deviation = np.sqrt(c.var(axis=-1, keepdims=True) + 1e-5)
    return (c - c.mean(axis=-1, keepdims=True)) / deviation * gamma + beta


def rmsnorm(a: Array, b: Array, gamma: Array) -> Array:
    """Return RMSNorm(a b) over the rows."""
    c = a @ b
    size = np.linalg.norm(c, axis=-1, keepdims=True) / np.sqrt(c.shape[-1])
    return gamma * c / np.sqrt(size * size + 1e-3)


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return 0.5 * (1 + np.tanh(x / 2))


def gemm_gelu(a: Array, b: Array) -> Array:
    """Return GELU(a b), in the form with tanh."""
    c = a @ b
    return c * sigmoid(2 * np.sqrt(2 / np.pi) * (c + 0.044715 * np.power(c, 3)))


def gemm_silu(a: Array, b: Array) -> Array:
    """Return SiLU(a b)."""
    return (a @ b) * sigmoid(a @ b)


def gemm_bias_relu(a: Array, b: Array, bias: Array) -> Array:
    """Return what of a b + bias is above zero."""
    return np.clip(a @ b + bias, 0, None)


def gemm_gemm(a: Array, b: Array, c: Array) -> Array:
    """Return (a b) c."""
    return np.einsum("mk,kn,nl->ml", a, b, c)


def gated_mlp(x: Array, gate: Array, up: Array, down: Array) -> Array:
    """Return (silu(x gate) * (x up)) down."""
    return np.einsum("mn,mn,nl->ml", gemm_silu(x, gate), x @ up, down)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Return softmax(q k^T / sqrt(D)) v for each batch entry and head."""
    scores = np.einsum("bhmd,bhnd->bhmn", q, k) / np.sqrt(q.shape[3])
    return np.einsum("bhmn,bhne->bhme", softmax(scores), v)


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    """Return attention of each query to the keys up to its own, aligned at the end."""
    rows = [attention(q[:, :, [m]], k[:, :, :n], v[:, :, :n]) for m, n in _seen(q, k)]
    return np.concatenate(rows, axis=2)


def _seen(q: Array, k: Array) -> list[tuple[int, int]]:
    more = k.shape[2] - q.shape[2]
    return [(m, m + more + 1) for m in range(q.shape[2])]


def _key_head_of(formula: Formula, *, flat: bool) -> Formula:
    """Return attention of one key head, or of a flat one, for each of its queries."""

    def grouped(q: Array, k: Array, v: Array) -> Array:
        heads = k.shape[1]
        several = q.reshape(len(q), heads, -1, *q.shape[-2:]) if flat else q
        parts = [
            formula(several[:, :, group], k, v) for group in range(several.shape[2])
        ]
        whole = np.stack(parts, axis=2)
        return whole.reshape(*q.shape[:-1], v.shape[-1]) if flat else whole

    return grouped


def flash_decode(q: Array, k: Array, v: Array, lens: Array) -> Array:
    """Return attention of each batch entry to as many keys as it has."""
    entries = range(len(lens))
    cut = [
        (q[[b]], k[[b], :, : int(lens[b])], v[[b], :, : int(lens[b])]) for b in entries
    ]
    return np.concatenate([attention(*parts) for parts in cut])


def ssm_scan(x: Array, log_a: Array, b: Array, c: Array) -> Array:
    """Return the scan by its closed form, y_t = sum of c_t b_u x_u over u <= t."""
    out = np.zeros_like(x)
    for t in range(x.shape[1]):
        for u in range(t + 1):
            decay = np.exp(log_a[:, u + 1 : t + 1].sum(axis=1))
            weight = decay * np.vecdot(c[:, t], b[:, u])
            out[:, t] += weight[:, None] * x[:, u]
    return out


SCAN = {"H": 3, "T": 13, "D": 5, "S": 4}
DECODE = {"B": 3, "H": 2, "G": 5, "S": 19, "D": 7, "E": 11}
HEADS = {"B": 2, "H": 3, "M": 5, "N": 19, "D": 7, "E": 11}
HEADS_EVEN = {"B": 1, "H": 4, "M": 32, "N": 64, "D": 16, "E": 32}
GROUPED = (
    (("B", "H", "G", "M", "D"), *AttentionOp.OPERANDS[1:]),
    ("B", "H", "G", "M", "E"),
)
FLAT = (
    (("B", "HG", "M", "D"), *AttentionOp.OPERANDS[1:]),
    ("B", "HG", "M", "E"),
)
EXPERTS = {"E": 5, "T": 7, "D": 3, "F": 11}
EXPERTS_EVEN = {"E": 4, "T": 32, "D": 16, "F": 64}
GEMM = {"M": 5, "K": 7, "N": 19}
GEMM_EVEN = {"M": 32, "K": 16, "N": 64}

NAMED_OPS = (
    NamedOp("gemm", gemm, GEMM, GEMM_EVEN),
    NamedOp("ag_gemm", gemm, GEMM, GEMM_EVEN),
    NamedOp("expert_gemm", gemm, EXPERTS, EXPERTS_EVEN),
    NamedOp("gemm_softmax", gemm_softmax, GEMM, GEMM_EVEN),
    NamedOp("gemm_layernorm", layernorm, GEMM, GEMM_EVEN),
    NamedOp("gemm_rmsnorm", rmsnorm, GEMM, GEMM_EVEN, "epsilon 1.0e-03"),
    NamedOp("gemm_gelu", gemm_gelu, GEMM, GEMM_EVEN),
    NamedOp("gemm_silu", gemm_silu, GEMM, GEMM_EVEN),
    NamedOp("gemm_bias_relu", gemm_bias_relu, GEMM, GEMM_EVEN),
    NamedOp("gemm_gemm", gemm_gemm, GEMM | {"L": 11}, GEMM_EVEN | {"L": 32}),
    NamedOp("gated_mlp", gated_mlp, GEMM | {"L": 11}, GEMM_EVEN | {"L": 32}),
    NamedOp("attention", attention, HEADS, HEADS_EVEN),
    NamedOp("attention", causal_attention, HEADS, HEADS_EVEN, "causal", "causal", True),
    NamedOp(
        "attention",
        _key_head_of(attention, flat=False),
        HEADS | {"H": 2, "G": 3},
        HEADS_EVEN | {"G": 2},
        variant="grouped",
        form=GROUPED,
    ),
    NamedOp(
        "attention",
        _key_head_of(causal_attention, flat=True),
        HEADS | {"H": 2, "HG": 6},
        HEADS_EVEN | {"HG": 8},
        "causal",
        "flat",
        positions=True,
        form=FLAT,
        viewed=("HG",),
        factors=("H",),
    ),
    NamedOp("flash_decode", flash_decode, DECODE, DECODE, positions=True),
    NamedOp("ssm_scan", ssm_scan, SCAN, SCAN, positions=True),
)
