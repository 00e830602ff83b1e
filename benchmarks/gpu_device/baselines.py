"""What a user of torch would run instead of a kernel of comet's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Baseline:
    """One alternative: what launches it once, or why it is missing."""

    name: str
    work: Callable[[], Tensor] | None
    """Ran once already; enqueues one launch and returns its result."""
    missing: str = ""
    """One sentence, where there is no work."""
    partial: bool = False
    """Whether it is a part of the op alone, such as its product, and not comparable."""


def names(kind: str) -> tuple[str, ...]:
    """
    Return the baselines of an op, the most important first.

    eager, compile, compile_graph, product; of attention cudnn, flash, efficient.
    """
    raise NotImplementedError


def baseline(name: str, kind: str, inputs: Sequence[Tensor]) -> Baseline:
    """Prepare one baseline: compile it where it has to be, and run it once."""
    raise NotImplementedError


def baselines(kind: str, inputs: Sequence[Tensor]) -> dict[str, Baseline]:
    """Prepare all baselines of an op, by name; missing ones say why."""
    return {name: baseline(name, kind, inputs) for name in names(kind)}
