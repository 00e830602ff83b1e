"""The report of `comet-explore`: what its flags ask for, checked before the search."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.program import installed_context, parsed
from comet.api.question import Question
from comet.api.source import Source
from comet.cost.from_ir.mapping import problem_of
from comet.report import require_packages


@dataclass(frozen=True)
class Reporting:
    """What is to be written about an answer."""

    page: str | None
    """The file of the page."""
    plots: str | None
    """The folder of the plots."""
    other: tuple[str, ModuleOp] | None
    """The name and the module of a mapping to compare with."""

    @classmethod
    def of(cls, options: Namespace) -> Self | None:
        """
        Return what the flags ask for, None if that is nothing.

        Raises UsageError if a package is missing, CostError if the mapping to compare
        with is none.
        """
        if options.report is None and options.plots is None:
            return None
        require_packages()
        other = None if options.compare is None else _mapped(options.compare)
        return cls(options.report, options.plots, other)

    def write(
        self, question: Question, answer: Answer, search: Callable[[Question], Answer]
    ) -> None:
        """Write the files; `search` finds the mappings for the other objectives."""
        from comet.report.front import front_of
        from comet.report.mapping_report import page_of

        front = front_of(question, answer, search)
        page = page_of(question, answer, front, self.other)
        if self.page is not None:
            Path(self.page).write_text(page.html(), encoding="utf-8")
        if self.plots is not None:
            page.save_plots(Path(self.plots))


def _mapped(path: str) -> tuple[str, ModuleOp]:
    """Return the mapping in a file, with its name; raises CostError if it has none."""
    module = parsed(Source.read(path).text, path, installed_context())
    problem_of(module)
    return path, module
