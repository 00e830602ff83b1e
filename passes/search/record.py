"""
The records of searches: each choice, and the results of its candidates.

A choice and those made within its candidates are in one session; a session that is
opened around several passes has the choices of all of them.
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
    """The resource that bounds the price, or why there is none."""


@dataclass(frozen=True)
class Missed:
    """A rejected candidate whose lower bound is far below that of the chosen one."""

    label: str
    least: float
    """Its lower bound: of cycles, pJ, or their product."""
    price: float
    """What the chosen candidate costs, in the same unit."""
    unit: str
    reason: str
    """Why it was rejected."""


@dataclass(frozen=True)
class Choice:
    """One choice, with the results of its candidates."""

    name: str
    """The option to choose, such as `fuse strategy`."""
    place: str
    """Its function or op."""
    within: tuple[str, ...]
    """The candidates of outer choices that were being tried, outermost first."""
    rows: tuple[Row, ...]
    chosen: int | None
    """The row that was taken, None if none was."""
    missed: Missed | None = None
    """The rejected candidate that would do far less, if there is one."""

    @property
    def warning(self) -> str | None:
        """A sentence that says what was missed and why, if anything was."""
        if self.missed is None or self.chosen is None:
            return None
        missed = self.missed
        return (
            f"{self.name} for {self.place}: {self.rows[self.chosen].label} costs "
            f"{missed.price:,.0f} {missed.unit}; {missed.label} might cost as little "
            f"as {missed.least:,.0f}, and is rejected: {missed.reason}"
        )


@dataclass
class Session:
    """What one run of passes has searched."""

    choices: list[Choice] = field(default_factory=list[Choice])
    within: tuple[str, ...] = ()
    """The candidates that are being tried, outermost first."""
    ceilings: tuple[Cost, ...] = ()
    """What the best candidates of outer choices cost: nothing dearer is of use."""
    deadline: float = inf
    """When choices end with the best known candidates, on the monotonic clock."""
    allow_artifacts: bool = False
    """Whether what only a defect of a model allows is as good as anything else."""
    obeys_interrupts: bool = False
    """Whether Ctrl-C ends choices likewise, instead of the whole run."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What outermost choices missed, one sentence each."""
        outermost = (choice.warning for choice in self.choices if not choice.within)
        return tuple(sentence for sentence in outermost if sentence is not None)

    @property
    def is_late(self) -> bool:
        """Whether choices have to end."""
        return monotonic() > self.deadline

    def interrupt(self, error: KeyboardInterrupt, *, known: bool) -> None:
        """Let all choices end after Ctrl-C; raises if no candidate is `known`."""
        if not (known and self.obeys_interrupts):
            raise error
        self.deadline = -inf

    @contextmanager
    def until(self, deadline: float) -> Generator[None]:
        """
        Let choices end at a deadline or at Ctrl-C, with the best known candidates.

        Raises KeyboardInterrupt at the end if there was one.
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
        """Let choices take artifacts, or prefer all others."""
        outer = self.allow_artifacts
        self.allow_artifacts = allowed
        try:
            yield
        finally:
            self.allow_artifacts = outer

    @contextmanager
    def trying(self, candidate: str, ceiling: Cost | None) -> Generator[None]:
        """Let choices be made within a candidate, which is of use below a cost."""
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
    """Enter the session that is open, or else a new one."""
    if (current := _OPEN.get()) is not None:
        yield current
        return
    opened = Session()
    token = _OPEN.set(opened)
    try:
        yield opened
    finally:
        _OPEN.reset(token)
