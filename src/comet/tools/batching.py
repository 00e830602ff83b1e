"""What `comet-explore --batch` does with its flags, and with the answers."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from comet.api.answer import Answer
from comet.api.question import Question
from comet.api.source import Source
from comet.batch.answering import Result, results
from comet.batch.engines import Engine
from comet.batch.layers import read_layers
from comet.text_table import aligned
from comet.tools.exploring import question_of, store_of

UNNAMED = Source("", "")
"""A file that each entry names."""

HEAD = (
    "program",
    "hardware",
    "objective",
    "cycles",
    "pJ",
    "bound",
    "gap %",
    "seconds",
    "mapping",
)


def print_batch(options: Namespace) -> bool:
    """Print the answers of a file of questions; return whether all have one."""
    rest = question_of(options, UNNAMED, UNNAMED)
    questions = read_layers(Path(options.batch), options.hardware, rest)
    engine = Engine(options.engine, options.jobs)
    found = results(questions, engine, store_of(options), _count)
    pairs = [*zip(questions, found, strict=True)]
    if options.json:
        print(json.dumps([_figures(*pair) for pair in pairs]))
    else:
        print(_table(pairs))
    return all(isinstance(result, Answer) for result in found)


def _count(answered: int, questions: int) -> None:
    print(f"{answered} of {questions} questions answered", file=sys.stderr)


def _figures(question: Question, result: Result) -> dict[str, object]:
    found = result.to_json() if isinstance(result, Answer) else {"error": str(result)}
    names = {"program": question.program.name, "hardware": question.hardware.name}
    return {**names, **found}


def _table(pairs: Sequence[tuple[Question, Result]]) -> str:
    """Return a line for each answer, then the sentences of the errors."""
    rows = [_row(q, result) for q, result in pairs if isinstance(result, Answer)]
    errors = [str(result) for _, result in pairs if not isinstance(result, Answer)]
    left = (0, 1, 2, len(HEAD) - 1)
    return "\n".join((*aligned([HEAD, *rows], left), *errors))


def _row(question: Question, answer: Answer) -> tuple[str, ...]:
    return (
        Path(question.program.name).stem,
        Path(question.hardware.name).stem,
        f"{answer.objective} ({answer.model})",
        f"{answer.latency_cycles:,.0f}",
        f"{answer.energy_pj:,.0f}",
        f"{answer.lower_bound:,.6g}",
        f"{answer.gap_percent:.2f}",
        f"{answer.seconds:.1f}",
        answer.mapping,
    )
