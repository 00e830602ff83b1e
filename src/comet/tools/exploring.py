"""What `comet-explore` does with its flags, and with the answer."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.program import installed_context, parsed
from comet.api.question import NOTHING, Question, Sampling
from comet.api.saved import saved_constraints
from comet.api.source import Source
from comet.batch.store import Store, recalled
from comet.cost.estimate import CostError
from comet.cost.from_ir.mapping import problem_of
from comet.tools.diagnostics import UsageError
from comet.tools.progress_bar import ProgressBar
from comet.tools.reporting import Outputs


def explore_and_write(options: Namespace, show: Callable[[Answer], None]) -> None:
    """Search, show the answer, and write the files that the flags ask for."""
    program, hardware = Source.read(options.input), Source.read(options.hardware)
    question, store = question_of(options, program, hardware), store_of(options)
    outputs = Outputs.of(options)
    reporting = None if outputs is None else SearchReporting(outputs)
    answer = _searched(question, store)
    show(answer)
    if options.emit is not None:
        for sentence in answer.emit(options.emit):
            print(sentence, file=sys.stderr)
    if options.output is not None:
        Path(options.output).write_text(answer.mlir(), encoding="utf-8")
    if options.certificate is not None:
        Path(options.certificate).write_text(answer.certificate(), encoding="utf-8")
    if reporting is not None:
        reporting.write(question, answer, lambda other: _searched(other, store))


def _searched(question: Question, store: Store | None) -> Answer:
    """Return an answer, and show meanwhile how far the search is."""
    with ProgressBar() as progress:
        return recalled(question, store, progress)


def question_of(options: Namespace, program: Source, hardware: Source) -> Question:
    """Return the question of a program on hardware, as the other flags ask it."""
    limits = options.constraints
    return Question(
        program,
        hardware,
        NOTHING if limits is None else saved_constraints(Source.read(limits)),
        options.model,
        options.objective,
        options.time_limit,
        options.tolerance,
        None
        if options.sampler is None
        else Sampling(options.sampler, options.seed, options.samples),
        None if options.start is None else Source.read(options.start),
        options.allow_artifacts,
    )


def store_of(options: Namespace) -> Store | None:
    """Return the file of answers, None if no flag names one."""
    return None if options.store is None else Store(Path(options.store))


class SearchReporting:
    """Writes the report on an answer; raises UsageError for nothing to compare with."""

    def __init__(self, outputs: Outputs):
        # Loaded before the search, as its end is what users wait for.
        from comet.report.front import front_of
        from comet.report.mapping_report import page_of

        self._outputs, self._front_of, self._page_of = outputs, front_of, page_of
        path = outputs.compare
        self._other = None if path is None else _mapped(path)

    def write(
        self, question: Question, answer: Answer, search: Callable[[Question], Answer]
    ) -> None:
        """Write the files; `search` finds the mappings for the other objectives."""
        front = self._front_of(question, answer, search)
        self._outputs.write(self._page_of(question, answer, front, self._other))


def _mapped(path: str) -> tuple[str, ModuleOp]:
    """Return the mapping in a file, with its name; raises UsageError if it has none."""
    module = parsed(Source.read(path).text, path, installed_context())
    try:
        problem_of(module)
    except CostError as error:
        raise UsageError(
            f"--compare: there is no mapping in {path}; name a file that comet-explore "
            "--output wrote"
        ) from error
    return path, module
