"""
A cache of the results of searches.

A search runs passes on copies of a module, and the chosen passes run on the module
again. A nested search of these passes has the same result for equal copies and for the
module.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Generic, TypeVar

from comet.passes.search.record import Choice, session
from comet.recent import Recent

T = TypeVar("T")


@dataclass
class Answer(Generic[T]):
    """What a search found."""

    found: T | None = None
    """None until the search, in whose body it is set."""
    choices: tuple[Choice, ...] = ()
    """The choices that it made, within no candidate of others."""


class Answers(Generic[T]):
    """The answers to questions, of which those asked least recently are forgotten."""

    def __init__(self, most: int):
        self._known = Recent[Hashable, Answer[T]](most)

    @contextmanager
    def to(self, question: Hashable) -> Generator[Answer[T]]:
        """
        Enter a search, which finds an answer or has the one of an equal question.

        The choices of the body are then those of that search. What is found before a
        deadline may not be the best, and is not kept.
        """
        known = self._known.get(question)
        answer = Answer[T]() if known is None else known
        with session() as current:
            before, within = len(current.choices), current.within
            yield answer
            if known is None:
                made = current.choices[before:]
                kept = (replace(c, within=c.within[len(within) :]) for c in made)
                answer.choices = tuple(kept)
            else:
                again = (replace(c, within=within + c.within) for c in known.choices)
                current.choices[before:] = again
            if current.deadline == inf:
                self._known.keep(question, answer)
