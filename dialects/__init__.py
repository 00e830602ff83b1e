"""
The dialects of comet, imported on demand: a folder each, but for `cost`.

In the order of the levels: `compound` (graphs and elementary ops), `collective`,
`schedule`, `dataflow`, `tl` (Triton), `comet` (COMET files); `arch` is the machine,
`cost` the attribute for estimates. What they share: `chain`, `blocks`, `parents`,
`reference`, `errors`, `axis_names`, `number_text`, `description`.
"""

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
