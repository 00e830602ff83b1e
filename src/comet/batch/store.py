"""Answers in an SQLite file, which several processes may share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from comet.api.answer import Answer
from comet.api.exploring import Notify, explore, ignored
from comet.api.question import Question
from comet.api.versions import source_digest, versions
from comet.batch.record import read, written
from comet.tools.diagnostics import UsageError

FORMAT = 1
"""The format number of stored answers."""

PATIENCE = 60.0
"""Seconds to wait for a process that writes."""

TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    question TEXT PRIMARY KEY, finished INTEGER, seconds REAL, answer TEXT
)
"""

KEEP = """
INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (question) DO UPDATE
SET finished = excluded.finished, seconds = excluded.seconds, answer = excluded.answer
WHERE NOT finished AND (excluded.finished OR excluded.seconds > seconds)
"""
"""A finished search is never replaced, and an unfinished one by a longer one only."""

FIND = """
SELECT answer FROM answers WHERE question = ? AND (finished OR seconds >= ?)
"""


def digest(question: Question) -> str:
    """
    Return a text that is the same for questions with the same finished answer.

    It depends on the source of comet that maps and prices programs, but neither on the
    time limit nor on the folders of the files.
    """
    parts = (
        FORMAT,
        versions(),
        source_digest(),
        question.program.text,
        Path(question.hardware.name).stem,
        question.hardware.text,
        question.constraints.text,
        question.model,
        question.objective,
        question.allow_artifacts,
        question.tolerance,
        None if question.sampling is None else asdict(question.sampling),
        None if question.start is None else question.start.text,
        [plugin.text for plugin in question.plugins],
    )
    return sha256(json.dumps(parts).encode()).hexdigest()


def is_finished(question: Question, answer: Answer) -> bool:
    """Return whether a longer search would give the same answer."""
    gap = answer.gap_percent
    return answer.proven or (gap is not None and gap <= 100 * question.tolerance)


@dataclass(frozen=True)
class Store:
    """The answers in a file, which is created if there is none."""

    path: Path

    def find(self, question: Question) -> Answer | None:
        """
        Return the answer of an earlier search, None if there is none.

        That search was finished, or took at least the time limit of the question.
        Raises UsageError if the file cannot be used.
        """
        asked = digest(question), question.time_limit
        with self._connected() as connection:
            row = connection.execute(FIND, asked).fetchone()
        return None if row is None else read(row[0], question)

    def keep(self, question: Question, answer: Answer) -> None:
        """Write an answer; raises UsageError if the file cannot be used."""
        finished = is_finished(question, answer)
        row = digest(question), finished, answer.seconds, written(answer)
        with self._connected() as connection:
            connection.execute(KEEP, row)

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        """Open the file for one transaction; readers do not wait for a writer."""
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                with connection:
                    connection.execute(TABLE)
                    yield connection
        except sqlite3.Error as error:
            raise UsageError(
                f"{self.path}: answers cannot be kept here ({error}); name a file that "
                "--store has made, or a new one"
            ) from error


def recalled(
    question: Question, store: Store | None, progress: Notify = ignored
) -> Answer:
    """Return the stored answer, or search for one and store it."""
    if store is None:
        return explore(question, progress)
    if (answer := store.find(question)) is None:
        answer = explore(question, progress)
        store.keep(question, answer)
    return answer
