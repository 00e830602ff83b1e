"""How far fusion goes: what is decided before the ops of a function are grouped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

STRATEGY = "comet.strategy"
"""The attribute of a function that notes the strategy which `fuse` has chosen."""

CHUNKS = "comet.chunks"
"""The one that notes where folds stand, on accelerators."""

BETWEEN = "comet.between"
"""The one that notes what becomes of products that are needed twice, on GPUs."""

Name: TypeAlias = Literal["none", "isolate_contractions", "partial", "full"]
Chunks: TypeAlias = Literal["shared", "root"]
Between: TypeAlias = Literal["recompute", "spill"]


@dataclass(frozen=True)
class Strategy:
    """One way to fuse a function."""

    name: Name
    """How far intermediates travel, as the option of `fuse` says it."""
    chunks: Chunks = "shared"
    """On accelerators, the level that folds take their chunks from."""
    whole: bool = False
    """
    On GPUs, a dimension that needs several reduction loops is kept whole in registers.
    """
    spill: bool = False
    """On GPUs, products that two reduction loops need go through device memory."""
    again: bool = False
    """Products that kernels on both sides of a collective need are computed twice."""
    cuts: frozenset[int] = frozenset()
    """The places of ops that begin another kernel, in the order of `in_stages`."""


def begins_nest(name: Name, contracts: bool, after_contraction: bool) -> bool:
    """
    Return whether an op begins a nest: `none` gives one to every op, `apart` to every
    contraction, `partial` to every contraction with what follows it.

    `contracts` says that the op is or holds one, and `after_contraction` that the nest
    before it begins with one.
    """
    ends = name == "none" or (name == "isolate_contractions" and after_contraction)
    return ends or (name != "full" and contracts)
