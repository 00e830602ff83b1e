"""What a search minimises: a model, an objective, and costs in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeAlias, TypeVar

from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import ModelName
from comet.dialects.arch import SystemOp

Objective: TypeAlias = Literal["latency", "energy", "edp"]
"""`edp` is the product of energy and latency."""


@dataclass(frozen=True)
class Cost:
    """What a candidate costs, or, as a bound, what it costs at least."""

    latency: float
    """Cycles on accelerators, seconds on GPUs."""
    energy: float = 0.0
    """pJ; 0 where the hardware says nothing of energy."""


FREE = Cost(0.0)
"""The lower bound of what nothing is known about."""


class Number(Protocol):
    """A number, or an array of them."""

    def __mul__(self, other: Self, /) -> Self: ...


NumberT = TypeVar("NumberT", bound=Number)


@dataclass(frozen=True)
class Goal:
    """The cost model that prices candidates, and what of the price counts."""

    model: ModelName = "paper"
    objective: Objective = "latency"

    def rank(self, latency: NumberT, energy: NumberT) -> tuple[NumberT, NumberT]:
        """Return what costs are ordered by: the objective, then what decides ties."""
        match self.objective:
            case "latency":
                return latency, energy
            case "energy":
                return energy, latency
            case "edp":
                return latency * energy, latency

    def order(self, cost: Cost) -> tuple[float, float]:
        """Return what a single cost is ordered by."""
        return self.rank(cost.latency, cost.energy)

    def check(self, name: str, system: SystemOp) -> None:
        """
        Raise PassFailedException in the pass `name` if `system` cannot be priced so.

        Kernels of GPUs have one model, and their hardware files no energies.
        """
        if system.gpu is None:
            return
        if self.model != "paper":
            raise PassFailedException(
                f"{name}: model={self.model} prices accelerators only; use model=paper "
                "for GPUs"
            )
        if self.objective != "latency":
            raise PassFailedException(
                f"{name}: objective={self.objective} needs energies, which hardware "
                "files of GPUs do not have; use objective=latency"
            )


LATENCY = Goal()
"""The default: latency under `paper`; equal latency is decided by energy."""
