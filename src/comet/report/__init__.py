"""
Reports on mappings, chains of mappings and launch plans, each as one HTML page.

`mapping_figures` and `plan_figures` read the cost models, `mapping_timeline` places the
nodes of a mapping in time, `plots` draws, `page` writes the file.
"""

from __future__ import annotations

from comet.tools.extras import loaded

PACKAGES = ("jinja2", "matplotlib")
"""The packages that the extra `report` installs."""


def require_packages() -> None:
    """Raise UsageError if a package of the extra `report` is missing."""
    for name in PACKAGES:
        loaded(name, "report", "a report")
