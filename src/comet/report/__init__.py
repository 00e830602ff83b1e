"""
A mapping as one HTML page: where its time and energy go, and what would change them.

`figures` reads what the cost models say about a mapping, `timeline` when its nodes run,
`plots` draws, `page` writes the file.
"""

from __future__ import annotations

from comet.tools.extras import loaded

PACKAGES = ("jinja2", "matplotlib")
"""What the extra `report` installs."""


def require_packages() -> None:
    """Raise UsageError if a package is missing that a report is made with."""
    for name in PACKAGES:
        loaded(name, "report", "a report")
