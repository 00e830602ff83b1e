"""Fusion strategies, and the function attributes that record the chosen options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

STRATEGY = "comet.strategy"
"""The attribute of a function with the chosen strategy of `fuse`."""

CHUNKS = "comet.chunks"
"""The attribute with the chosen option `chunks`, on accelerators."""

LOOPS = "comet.loops"
"""The attribute with the chosen option `loops`, on accelerators."""

BETWEEN = "comet.between"
"""The attribute with the chosen option `between`, on GPUs."""

KERNELS = "comet.kernels"
"""The attribute with the values that each kernel stores, if priority fusion chose."""

Name: TypeAlias = Literal["none", "isolate_contractions", "partial", "full", "priority"]
STRATEGIES: tuple[Name, ...] = ("full", "partial", "isolate_contractions", "none")
"""The strategies for accelerators, in the order in which `auto` tries them."""

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
    """On accelerators, whether each product has its own loop over the shared buffer."""
    full_rows: bool = False
    """
    On GPUs, whether registers hold whole rows of a dimension that otherwise needs
    several reduction loops.
    """
    spill: bool = False
    """On GPUs, whether products that two reduction loops need go through memory."""
    recompute: bool = False
    """
    On GPUs, kernels on both sides of a collective compute the products that both need;
    with priority fusion, every kernel computes the `recomputable_ops` that it needs.
    """
    eager: bool = False
    """
    On GPUs, priority fusion makes a merge that saves almost as much as others may save.
    """


def begins_nest(name: Name, contracts: bool, after_contraction: bool) -> bool:
    """
    Return whether an op begins a nest.

    With `none` every op does; with `isolate_contractions` every contraction, and the op
    after one; with `partial` every contraction, so that its nest has its epilogue; with
    `full` none. `contracts`: the op is or contains a contraction. `after_contraction`:
    the current nest begins with one.
    """
    ends = name == "none" or (name == "isolate_contractions" and after_contraction)
    return ends or (name != "full" and contracts)
