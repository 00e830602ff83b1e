"""The goal of a search: a cost model, an objective, and the order of costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated, Literal, Protocol, Self, TypeAlias, TypeVar

from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import ModelName

Objective: TypeAlias = Literal["latency", "energy", "edp"]
"""`edp` is the product of energy and latency."""

ModelOption: TypeAlias = Annotated[
    ModelName, "The cost model for choices that are `auto`, see `annotate-cost`."
]
"""The option `model` of passes, with what it means."""

ObjectiveOption: TypeAlias = Annotated[
    Objective, "What is minimized: cycles, pJ, or their product."
]
"""The option `objective` of passes, with what it means."""


@dataclass(frozen=True)
class Cost:
    """The cost of a candidate, or a lower bound of it."""

    latency: float
    """Cycles on accelerators, seconds on GPUs."""
    energy: float = 0.0
    """pJ; 0 if the hardware has no energies."""
    artifact: bool = False
    """Whether the price relies on a defect of the model: all others are preferred."""
    latency_by: str = field(default="", compare=False)
    """The work that a lower bound of the latency counts, as in "operations"."""
    energy_by: str = field(default="", compare=False)
    """The work that a lower bound of the energy counts."""


def higher(first: Cost, second: Cost) -> Cost:
    """Return the larger of two lower bounds, for latency and for energy."""
    slow = max(first, second, key=lambda cost: cost.latency)
    large = max(first, second, key=lambda cost: cost.energy)
    return Cost(
        slow.latency,
        large.energy,
        latency_by=slow.latency_by,
        energy_by=large.energy_by,
    )


FREE = Cost(0.0)
"""The lower bound if nothing is known."""


TOOL_FAR = 2
"""
`tool` has no bounds, so a candidate is skipped if `paper` bounds it by more than this
many times the best known cost.
"""


class Number(Protocol):
    """A number, or an array of them."""

    def __mul__(self, other: Self, /) -> Self: ...


NumberT = TypeVar("NumberT", bound=Number)


@dataclass(frozen=True)
class Goal:
    """The cost model that prices candidates, and the objective."""

    model: ModelName = "paper"
    objective: Objective = "latency"

    def rank(self, latency: NumberT, energy: NumberT) -> tuple[NumberT, NumberT]:
        """Return the sort keys of costs: the objective, then the tie-breaker."""
        match self.objective:
            case "latency":
                return latency, energy
            case "energy":
                return energy, latency
            case "edp":
                return latency * energy, latency

    @property
    def guide(self) -> ModelName:
        """The model that bounds plans and prices many at once: for `tool` `paper`."""
        return "paper" if self.model == "tool" else self.model

    def floor(self, bound: Cost) -> Cost:
        """
        Return the cost below which nothing is expected, for a lower bound by `guide`.

        Nothing is below it, but under `tool`, where this is a fraction of the bound.
        """
        if self.model != "tool":
            return bound
        latency, energy = bound.latency / TOOL_FAR, bound.energy / TOOL_FAR
        return replace(bound, latency=latency, energy=energy)

    @property
    def unit(self) -> str:
        """The unit of the objective on accelerators."""
        return {"latency": "cycles", "energy": "pJ", "edp": "pJ x cycles"}[
            self.objective
        ]

    def counted(self, bound: Cost) -> str:
        """Return the name of the work that a lower bound of the objective counts."""
        names = {
            "latency": (bound.latency_by,),
            "energy": (bound.energy_by,),
            "edp": (bound.latency_by, bound.energy_by),
        }
        return " x ".join(dict.fromkeys(names[self.objective]))

    def order(self, cost: Cost) -> tuple[float, float]:
        """Return the sort key of a single cost; an artifact comes after all others."""
        first, second = self.rank(cost.latency, cost.energy)
        return (inf, first) if cost.artifact else (first, second)

    def check(self, name: str, *, on_gpu: bool) -> None:
        """
        Raise PassFailedException in the name of a pass if the goal is not for GPUs.

        There is one model for GPUs, and their hardware files have no energies.
        """
        if not on_gpu:
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
"""The default: latency under `paper`; of equal latencies, the lower energy."""


class ChoosesByGoal:
    """A pass with the options `model` and `objective`, by which it chooses."""

    model: ModelOption
    objective: ObjectiveOption

    @property
    def goal(self) -> Goal:
        """The cost model, and what is minimized."""
        return Goal(self.model, self.objective)
