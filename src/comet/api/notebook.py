"""Progress in notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from comet.api.answer import Progress


class _Display(Protocol):
    """An output of a cell that can be replaced."""

    def update(self, shown: object, /) -> None: ...


def in_notebook() -> bool:
    """Return whether the code runs in a cell of a notebook."""
    shell: Callable[[], object] | None = getattr(
        sys.modules.get("IPython"), "get_ipython", None
    )
    return shell is not None and hasattr(shell(), "kernel")


class NotebookProgress:
    """Shows the progress of a search below its cell."""

    def __init__(self) -> None:
        self._display: _Display | None = None

    def __call__(self, progress: Progress) -> None:
        """Replace the shown state by `progress`."""
        if self._display is None:
            display = import_module("IPython.display").display
            self._display = cast(_Display, display(progress, display_id=True))
        else:
            self._display.update(progress)
