"""The command `comet-run`; `comet.runtime` does the work."""

from comet.runtime.command import main

__all__ = ["main"]
