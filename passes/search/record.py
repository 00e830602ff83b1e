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


@dataclass
class Session:
    """What one run of passes has searched."""

    choices: list[Choice] = field(default_factory=list[Choice])
    within: tuple[str, ...] = ()
    """The candidates that are being tried, outermost first."""
    ceilings: tuple[Cost, ...] = ()
    """What the best candidates of outer choices cost: nothing dearer is of use."""

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
