"""The flags of a report, which are the same in every tool that writes one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from comet.report import require_packages
from comet.tools.diagnostics import UsageError

if TYPE_CHECKING:
    from comet.report.page import Page


def add_report_flags(parser: ArgumentParser, other: str) -> None:
    """Add the flags of a report; `other` says what it may be compared with."""
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="Write an HTML page: where the time goes, why, and what would change it",
    )
    parser.add_argument(
        "--compare", metavar="FILE", help=f"Compare, in the report, with {other}"
    )
    parser.add_argument(
        "--plots", metavar="DIR", help="Write the report's plots as SVG and PNG"
    )


def expect_folder(flag: str, name: str | None) -> None:
    """Raise UsageError for a folder that cannot be made, before the work of it."""
    if name is None:
        return
    there = next(each for each in (Path(name), *Path(name).parents) if each.exists())
    if there.is_file():
        raise UsageError(f"--{flag}: {there} is a file; name a folder")


def expect_writable(flag: str, name: str | None) -> None:
    """Raise UsageError for a file in no folder, before the work that it is about."""
    if name is None:
        return
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"{flag}: no file can be written at {path}; name one in a folder that "
            "exists"
        )


@dataclass(frozen=True)
class Outputs:
    """The files that the flags of a report name."""

    page: str | None
    plots: str | None
    """The folder of the plots."""
    compare: str | None
    """The file of a program to compare with."""

    @classmethod
    def of(cls, options: Namespace) -> Self | None:
        """
        Return the outputs that the flags request, None if there are none.

        Raises UsageError if a package is missing, or the report to compare in, and if
        a file cannot be written at its place.
        """
        if options.report is None and options.plots is None:
            if options.compare is not None:
                raise UsageError("--compare is a part of the report; give --report too")
            return None
        require_packages()
        expect_writable("--report", options.report)
        expect_folder("plots", options.plots)
        return cls(options.report, options.plots, options.compare)

    def write(self, page: Page) -> None:
        """Write the files; raises OSError."""
        if self.page is not None:
            Path(self.page).write_text(page.html(), encoding="utf-8")
        if self.plots is not None:
            page.save_plots(Path(self.plots))
