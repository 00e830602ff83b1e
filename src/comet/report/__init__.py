"""
Reports on mappings, chains of mappings and launch plans, each as one HTML page.

`mapping_report`, `chain_report`, `plan_report` and `compiled_report` are the pages.
`mapping_figures` and `plan_figures` read the cost models, `mapping_timeline` places the
nodes of a mapping in time, `front` compares mappings, `numbers` have units, `plots`
draws, `sections` are those of all pages, `page` writes the file.
"""

from __future__ import annotations

from comet.tools.extras import loaded

PACKAGES = ("jinja2", "matplotlib")
"""The packages that the extra `report` installs."""


def require_packages() -> None:
    """Raise UsageError if a package of the extra `report` is missing."""
    for name in PACKAGES:
        loaded(name, "report", "a report")
