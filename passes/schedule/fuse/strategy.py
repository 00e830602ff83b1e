"""How far fusion goes: decided before the ops of a function are grouped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

STRATEGY = "comet.strategy"
"""The attribute of a function with the strategy that `fuse` has chosen."""

CHUNKS = "comet.chunks"
"""The attribute with the level of folds' loops, on accelerators."""

LOOPS = "comet.loops"
"""The attribute for whether products have loops of their own, on accelerators."""

BETWEEN = "comet.between"
"""The attribute for products that are needed twice, on GPUs."""

KERNELS = "comet.kernels"
"""The attribute with what each kernel stores, if priority fusion chose it."""

Name: TypeAlias = Literal["none", "isolate_contractions", "partial", "full", "priority"]
STRATEGIES: tuple[Name, ...] = ("full", "partial", "isolate_contractions", "none")
"""Those of accelerators."""

Chunks: TypeAlias = Literal["shared", "root"]
Loops: TypeAlias = Literal["shared", "separate"]
Between: TypeAlias = Literal["recompute", "spill"]


@dataclass(frozen=True)
class Strategy:
    """One way to fuse a function."""

    name: Name
    """Where intermediates go, as the option of `fuse`."""
    chunks: Chunks = "shared"
    """On accelerators, the level that folds read their chunks from."""
    loops: Loops = "shared"
    """On accelerators, whether products have own loops over the shared buffer."""
    whole: bool = False
    """
    On GPUs, a dimension that needs several reduction loops is kept whole in registers.
    """
    spill: bool = False
    """On GPUs, products that two reduction loops need go through device memory."""
    again: bool = False
    """
    Products that kernels on both sides of a collective need are computed twice; with
    priority fusion each kernel computes what it can of `ops_again`.
    """


def begins_nest(name: Name, contracts: bool, after_contraction: bool) -> bool:
    """
    Return whether an op begins a nest: with `none` every op does, with
    `isolate_contractions` every contraction and the op after one, with `partial` every
    contraction, whose nest has its epilogue.

    `contracts`: the op is or contains a contraction; `after_contraction`: the nest
    before it begins with one.
    """
    ends = name == "none" or (name == "isolate_contractions" and after_contraction)
    return ends or (name != "full" and contracts)
