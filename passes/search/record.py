"""
The records of searches: each choice, and the results of its candidates.

A session has a choice and the inner choices of its candidates; if it is opened around
several passes, it has the choices of all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from comet.passes.search.goal import Cost


@dataclass(frozen=True)
class Row:
    """One candidate of a choice."""

    label: str
    cost: Cost | None
    """None if the candidate was rejected or skipped."""
    limit: str
    """The resource that bounds the price, or the reason of the rejection."""
    rank: float | None = None
    """The sort key in seconds, if that is not the cost."""


@dataclass(frozen=True)
class Missed:
    """A rejected candidate whose lower bound is far below that of the chosen one."""

    label: str
    bound: float
    """Its lower bound, in `unit`."""
    price: float
    """The cost of the chosen candidate, in `unit`."""
    unit: str
    reason: str
    """Why it was rejected."""


@dataclass(frozen=True)
class Choice:
    """One choice, with the results of its candidates."""

    name: str
    """The option that is chosen, such as `strategy`."""
    place: str
    """The function or op that it is chosen for."""
    within: tuple[str, ...]
    """The candidates of outer choices that were being tried, outermost first."""
    rows: tuple[Row, ...]
    chosen: int | None
    """The row that was taken, None if none was."""
    missed: Missed | None = None
    """The rejected candidate that might be far cheaper, if there is one."""

    @property
    def warning(self) -> str | None:
        """A sentence about the missed candidate, None if there is none."""
        if self.missed is None or self.chosen is None:
            return None
        missed = self.missed
        return (
            f"{self.name} for {self.place}: {self.rows[self.chosen].label} costs "
            f"{missed.price:,.0f} {missed.unit}; {missed.label} might cost as little "
            f"as {missed.bound:,.0f}, and is rejected: {missed.reason}"
        )


@dataclass
class Session:
    """The choices of one run of passes, and the limits of the search."""

    choices: list[Choice] = field(default_factory=list[Choice])
    within: tuple[str, ...] = ()
    """The candidates that are being tried, outermost first."""
    ceilings: tuple[Cost, ...] = ()
    """The costs of the best candidates of outer choices: costlier ones are skipped."""
    deadline: float = inf
    """When choices take the best candidate so far, by the monotonic clock (seconds)."""
    processes: int = 1
    """
    How many processes may search, this one included. The records of others are lost, so
    that with several `choices` is not complete.
    """
    allow_artifacts: bool = False
    """Whether prices that rely on a defect of a model count like others."""
    obeys_interrupts: bool = False
    """Whether Ctrl-C acts like the deadline, instead of ending the whole run."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of outermost choices."""
        outermost = (choice.warning for choice in self.choices if not choice.within)
        return tuple(sentence for sentence in outermost if sentence is not None)

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return monotonic() > self.deadline

    def interrupt(self, error: KeyboardInterrupt, *, known: bool) -> None:
        """Let all choices end after Ctrl-C; raises if no candidate is `known`."""
        if not (known and self.obeys_interrupts):
            raise error
        self.deadline = -inf

    @contextmanager
    def until(self, deadline: float) -> Generator[None]:
        """
        Set the deadline; until it, Ctrl-C ends choices with the best known candidates.

        Raises KeyboardInterrupt afterwards if there was one.
        """
        outer = self.deadline, self.obeys_interrupts
        self.deadline, self.obeys_interrupts = deadline, True
        try:
            yield
            if self.deadline == -inf:
                raise KeyboardInterrupt
        finally:
            self.deadline, self.obeys_interrupts = outer

    @contextmanager
    def allowing_artifacts(self, allowed: bool) -> Generator[None]:
        """Set `allow_artifacts` in this context."""
        outer = self.allow_artifacts
        self.allow_artifacts = allowed
        try:
            yield
        finally:
            self.allow_artifacts = outer

    @contextmanager
    def under(self, model: str) -> Generator[None]:
        """Search by another model, by which outer choices have no costs."""
        outer = self.within, self.ceilings
        self.within, self.ceilings = (*self.within, f"model {model}"), ()
        try:
            yield
        finally:
            self.within, self.ceilings = outer

    @contextmanager
    def trying(self, candidate: str, ceiling: Cost | None) -> Generator[None]:
        """Enter a candidate of a choice, which is of use only below `ceiling`."""
        outer = self.within, self.ceilings
        self.within = (*self.within, candidate)
        self.ceilings += () if ceiling is None else (ceiling,)
        try:
            yield
        finally:
            self.within, self.ceilings = outer


_OPEN: ContextVar[Session | None] = ContextVar("search session", default=None)


@contextmanager
def session() -> Generator[Session]:
    """Enter the open session, or a new one if none is open."""
    if (current := _OPEN.get()) is not None:
        yield current
        return
    opened = Session()
    token = _OPEN.set(opened)
    try:
        yield opened
    finally:
        _OPEN.reset(token)
