"""The report of `comet-explore`, whose flags are checked before the search."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.program import installed_context, parsed
from comet.api.question import Question
from comet.api.source import Source
from comet.cost.from_ir.mapping import problem_of
from comet.tools.reporting import Outputs


class SearchReporting:
    """Writes the report on an answer; raises CostError if it compares with nothing."""

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
    """Return the mapping in a file, with its name; raises CostError if it has none."""
    module = parsed(Source.read(path).text, path, installed_context())
    problem_of(module)
    return path, module
