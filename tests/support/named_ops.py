"""The named compound ops that all tests of named ops run over, with their formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from comet.dialects.compound import Compound
from comet.dialects.compound_named import CompoundOp
from comet.interpreter.tensor import Array


@dataclass(frozen=True)
class NamedOp:
    """One op: what it computes, and the sizes at which it is tested."""

    name: str
    expected: Callable[..., Array]
    """The result for the operands' arrays, written without comet."""
    odd: Mapping[str, int]
    """Extents that divide by nothing."""
    even: Mapping[str, int]
    """Extents that the accelerators can share."""
    attributes: str = ""
    """What stands between the operands and the types."""

    def text(self, extents: Mapping[str, int], element: str = "f16") -> str:
        """Return a function @main of this op on tensors of the given extents."""
        kind = self.kind
        types = [_type(dims, extents, element) for dims in kind.OPERANDS]
        result = _type(kind.RESULT, extents, element)
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


GEMM = {"M": 5, "K": 7, "N": 19}
GEMM_EVEN = {"M": 32, "K": 16, "N": 64}

NAMED_OPS = (
    NamedOp("gemm_softmax", gemm_softmax, GEMM, GEMM_EVEN),
    NamedOp("gemm_layernorm", layernorm, GEMM, GEMM_EVEN),
    NamedOp("gemm_rmsnorm", rmsnorm, GEMM, GEMM_EVEN, "epsilon 1.0e-03"),
)
