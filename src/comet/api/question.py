"""The inputs of a search: a program, hardware, constraints, and a goal."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Literal, TypeAlias, get_args

from comet.api.choices import expect_one_of
from comet.api.plugins import loaded_plugins
from comet.api.source import Source
from comet.cost.estimate import ModelName
from comet.passes.explore.certificate import MODELS, OBJECTIVES
from comet.passes.search import Objective
from comet.tools.diagnostics import UsageError

NOTHING = Source("", "constraints.yaml")
"""The file of constraints that leaves every choice open."""

Sampler: TypeAlias = Literal["tpe", "cmaes", "nsga2"]


@dataclass(frozen=True)
class Sampling:
    """Samples instead of an exact search; raises UsageError for a wrong field."""

    sampler: Sampler = "tpe"
    """A sampler of Optuna."""
    seed: int = 0
    """The same seed gives the same samples."""
    samples: int = 1000

    def __post_init__(self) -> None:
        """Check the fields."""
        expect_one_of("sampler", self.sampler, get_args(Sampler))
        if not 0 <= self.seed < 1 << 32:
            raise UsageError("the seed is a number from 0 to 4294967295")
        if self.samples < 1:
            raise UsageError("the number of samples is positive")


@dataclass(frozen=True)
class Question:
    """
    Which mapping of a program on an accelerator is the best?

    Raises UsageError for an illegal value of a field.
    """

    program: Source
    """MLIR: one function with a named op or elementary ops on tensors."""
    hardware: Source
    """A hardware file; the stem of its path is the name of the machine."""
    constraints: Source = NOTHING
    """A file of constraints."""
    model: ModelName = "paper"
    """The cost model; `tool` has no lower bounds, so all mappings have to be priced."""
    objective: Objective = "latency"
    """What is minimized: cycles, pJ, or their product."""
    time_limit: float = 60.0
    """Seconds after which the search stops, with the gap that is left."""
    tolerance: float = 0.0
    """The search stops at a gap that is proven to be at most this fraction."""
    sampling: Sampling | None = None
    """How to sample the space; None to search it exactly."""
    start: Source | None = None
    """A mapping to start from, which `Answer.mlir` wrote, instead of a quick search."""
    allow_artifacts: bool = False
    """
    Whether mappings that the model `tool` prices below the roofline of the root memory,
    by a defect, are as good as others; otherwise they come after all others.
    """
    plugins: tuple[Source, ...] = field(default_factory=loaded_plugins)
    """The files with dialects of the program; other processes load them from here."""

    def __post_init__(self) -> None:
        """Check the fields."""
        expect_one_of("model", self.model, MODELS)
        expect_one_of("objective", self.objective, OBJECTIVES)
        if self.allow_artifacts and self.model != "tool":
            raise UsageError(
                f"the model {self.model} has no artifacts to allow; leave that out, or "
                "use the model tool"
            )
        if not 0 < self.time_limit < inf:
            raise UsageError("the time limit is a positive number of seconds")
        if not 0 <= self.tolerance < 1:
            raise UsageError(
                "the tolerance is a fraction from 0 to below 1, as in 0.02"
            )
        if self.start is not None and self.constraints.text:
            raise UsageError(
                "a start may be outside of the constraints; give one of the two, or "
                "the start as the constraints"
            )
