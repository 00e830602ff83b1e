"""What `comet-explore` does with several questions: their answers as a table."""

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
from comet.batch.strategies import as_csv, by_strategy, check_plot, plot
from comet.cost.estimate import figure_text
from comet.text_table import aligned
from comet.tools.exploring import question_of, store_of

UNNAMED = Source("", "")
"""A file that each entry names."""

COLUMNS = ("objective", "cycles", "pJ", "bound", "gap %", "seconds", "mapping")
"""The columns that say what was found."""


def print_batch(options: Namespace) -> bool:
    """Print the answers of a file of questions; return whether all have one."""
    rest = question_of(options, UNNAMED, UNNAMED)
    questions = read_layers(Path(options.batch), options.hardware, rest)
    pairs = [*zip(questions, _results(questions, options), strict=True)]
    if options.json:
        print(json.dumps([_figures(*pair) for pair in pairs]))
    else:
        rows = [((_stem(q.program), _stem(q.hardware)), found) for q, found in pairs]
        print(_table(("program", "hardware"), rows))
    return all(isinstance(result, Answer) for _, result in pairs)


def print_strategies(options: Namespace) -> bool:
    """Print the best mapping of each strategy; return whether there is one at all."""
    if options.plot is not None:
        check_plot(Path(options.plot))
    program, hardware = Source.read(options.input), Source.read(options.hardware)
    questions = by_strategy(question_of(options, program, hardware))
    found = dict(zip(questions, _results([*questions.values()], options), strict=True))
    if options.json:
        print(
            json.dumps(
                [
                    {"strategy": name, **_figures(questions[name], result)}
                    for name, result in found.items()
                ]
            )
        )
    else:
        rows = [((name,), result) for name, result in found.items()]
        print(_table(("strategy",), rows))
    if options.csv is not None:
        Path(options.csv).write_text(as_csv(found), encoding="utf-8")
    if options.plot is not None:
        plot(found, Path(options.plot))
    return any(isinstance(result, Answer) for result in found.values())


def _results(questions: Sequence[Question], options: Namespace) -> list[Result]:
    engine = Engine(options.engine, options.jobs)
    return results(questions, engine, store_of(options), _count)


def _count(answered: int, questions: int) -> None:
    print(f"{answered} of {questions} questions answered", file=sys.stderr)


def _figures(question: Question, result: Result) -> dict[str, object]:
    found = result.to_json() if isinstance(result, Answer) else {"error": str(result)}
    names = {"program": question.program.name, "hardware": question.hardware.name}
    return {**names, **found}


def _table(head: Sequence[str], rows: Sequence[tuple[Sequence[str], Result]]) -> str:
    """Return a line for each answer, then the sentences of the errors."""
    lines = [
        (*names, *_cells(result))
        for names, result in rows
        if isinstance(result, Answer)
    ]
    errors = [
        f"{' '.join(names)}: {result}"
        for names, result in rows
        if not isinstance(result, Answer)
    ]
    left = (*range(len(head) + 1), len(head) + len(COLUMNS) - 1)
    return "\n".join((*aligned([(*head, *COLUMNS), *lines], left), *errors))


def _cells(answer: Answer) -> tuple[str, ...]:
    return (
        f"{answer.objective} ({answer.model})",
        f"{answer.latency_cycles:,.0f}",
        f"{answer.energy_pj:,.0f}",
        "none" if answer.lower_bound is None else figure_text(answer.lower_bound),
        "-" if answer.gap_percent is None else f"{answer.gap_percent:.2f}",
        f"{answer.seconds:.1f}",
        answer.mapping,
    )


def _stem(source: Source) -> str:
    return Path(source.name).stem
