"""Answers many questions: from the store, or by searches in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from comet.api.answer import Answer
from comet.api.exploring import explore
from comet.api.question import Question
from comet.batch.engines import Engine
from comet.batch.record import read, written
from comet.batch.store import Store, digest
from comet.tools.diagnostics import CometError

Result: TypeAlias = Answer | CometError
"""An answer, or the error that says why there is none."""

_Key: TypeAlias = tuple[str, float]
"""The digest of a question, and its time limit."""

Count: TypeAlias = Callable[[int, int], None]
"""Called with the numbers of answered questions, and of all."""


@dataclass(frozen=True)
class _Reply:
    """The reply of a process to a question."""

    question: Question
    text: str
    """The answer as `written`, or the sentence of the error."""
    is_answer: bool

    def result(self) -> Result:
        """Return the answer, or the error."""
        if self.is_answer:
            return read(self.text, self.question)
        return CometError(self.text)


def results(
    questions: Sequence[Question], engine: Engine, store: Store | None, count: Count
) -> list[Result]:
    """
    Return the result of each question, in their order; equal ones are searched once.

    Every answer is written to `store` as soon as it is known, so a later call continues
    an interrupted one.
    """
    distinct: dict[_Key, Question] = {}
    for question in questions:
        distinct.setdefault(_key(question), question)
    answers: dict[_Key, Result] = {}
    if store is not None:
        found = ((key, store.find(question)) for key, question in distinct.items())
        answers.update((key, answer) for key, answer in found if answer)
    count(len(answers), len(distinct))
    if open_ := [each for key, each in distinct.items() if key not in answers]:
        for reply in engine.results(_reply, open_):
            result = answers[_key(reply.question)] = reply.result()
            if store is not None and isinstance(result, Answer):
                store.keep(reply.question, result)
            count(len(answers), len(distinct))
    return [_answer_to(each, distinct, answers) for each in questions]


def _key(question: Question) -> _Key:
    """Return what equal questions have in common, whatever their files are called."""
    return digest(question), question.time_limit


def _answer_to(
    question: Question, asked: dict[_Key, Question], answers: dict[_Key, Result]
) -> Result:
    """Return the result of a question, which names its own files."""
    key = _key(question)
    result = answers[key]
    if isinstance(result, CometError) or asked[key] == question:
        return result
    return read(written(result), question)


def _reply(question: Question) -> _Reply:
    """Return the reply to a question; Ctrl-C ends the whole batch."""
    try:
        answer = explore(question, keeps_best=False)
        return _Reply(question, written(answer), is_answer=True)
    except CometError as error:
        return _Reply(question, error.sentence, is_answer=False)
