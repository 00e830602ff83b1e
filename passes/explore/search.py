"""The best mapping of a program, with a lower bound for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TypeAlias

from xdsl.utils.exceptions import PassFailedException

from comet.passes.explore.best_first import BestFirst
from comet.passes.explore.constraints import ConstraintError
from comet.passes.explore.state import Item, State
from comet.passes.explore.structure import REJECTED
from comet.passes.schedule.tile.accelerator import tile_search
from comet.passes.schedule.tile.misfit import NothingFits
from comet.passes.search import Goal, session

Walk: TypeAlias = Callable[[State, float], None]
"""A way through the space; it ends at a time, and another call may continue it."""


@dataclass
class Exploration(State):
    """A search. After the time limit, another call of `run` continues it."""

    time_limit: float = inf
    """Seconds of one call of `run`."""
    keeps_best: bool = True
    """Whether Ctrl-C ends the search once it has a mapping, instead of being raised."""
    walk: Walk = field(default_factory=BestFirst)
    seconds: float = field(default=0.0, init=False)
    interrupted: bool = field(default=False, init=False)
    """Whether Ctrl-C has ended a call of `run`."""

    def run(self) -> None:
        """
        Search until the gap is closed, the time is up, or Ctrl-C interrupts.

        Raises KeyboardInterrupt for Ctrl-C before there is a mapping, or without
        `keeps_best`.
        Raises PassFailedException if there is no valid mapping; NothingFits if that is
        so because all tiles are too large.
        """
        start = monotonic()
        allowed = self.space.allow_artifacts
        try:
            with session() as current, current.allowing_artifacts(allowed):
                self.walk(self, start + self.time_limit)
        except KeyboardInterrupt:
            if self.best is None or not self.keeps_best:
                raise
            self.interrupted = True
        self.seconds += monotonic() - start
        if self.best is None and self.complete:
            raise _failure(self)


def _failure(state: State) -> PassFailedException:
    """Return the error that says why there is no mapping."""
    name = state.space.name
    realized = [item for item in state.items if item.space is not None]
    if realized and not state.size:
        return ConstraintError(
            "factors",
            f"{name}: the constraint 'factors' contradicts the program: in all of "
            f"{len(realized)} structures its factors do not divide the extents, or "
            f"what outer nodes leave of them, such as in {realized[0].label}",
        )
    for item in realized:
        if (reason := _misfit(item, state.goal)) is not None:
            text = (
                f"{name}: no valid mapping; the tiles of {len(realized)} structures "
                f"do not fit, such as those of {item.label}: {reason}"
            )
            fails = isinstance(reason, NothingFits)
            return NothingFits(text) if fails else PassFailedException(text)
    for key, reason in state.space.contradicted.items() if not state.items else ():
        return ConstraintError(
            key,
            f"{name}: the constraint '{key}' contradicts the program or the other "
            f"constraints: {reason}; change it, or leave it out",
        )
    if realized:
        return PassFailedException(
            f"{name}: no valid mapping: in each of the {len(state.items)} structures, "
            "the tiles exceed a buffer or the rules of the COMET format; constrain less"
        )
    return PassFailedException(f"{name}: no valid mapping; {state.rejection}")


def _misfit(item: Item, goal: Goal) -> Exception | None:
    """Return why the finest tiles of a structure do not fit, None if they do."""
    assert item.space is not None
    try:
        tile_search(item.space.template, goal, item.space.fixed).start()
    except REJECTED as error:
        return error
    return None
