"""The dialects of comet, one folder each, which is imported on demand."""

from collections.abc import Callable
from functools import partial
from typing import cast

from xdsl.ir import Dialect

from comet.registry import imported

DIALECTS = {
    "compound": "compound:Compound",
    "collective": "collective:Collective",
    "schedule": "schedule:Schedule",
    "dataflow": "dataflow:Dataflow",
    "tl": "tl:Tl",
    "comet": "comet:Comet",
    "arch": "arch:Arch",
    "cost": "cost:Cost",
}
"""The module of each dialect, below this package, and its object."""


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return a factory for every dialect of comet, by name."""
    return {name: partial(_dialect, path) for name, path in DIALECTS.items()}


def _dialect(path: str) -> Dialect:
    return cast(Dialect, imported(f"comet.dialects.{path}"))
