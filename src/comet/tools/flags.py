"""The parser of the flags of a tool."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn

from comet.tools.diagnostics import UsageError


class FlagParser(ArgumentParser):
    """Reports a mistake in the flags like any other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")
