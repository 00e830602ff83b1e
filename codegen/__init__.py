"""How IR leaves and enters comet: one target per emitted format."""

from collections.abc import Callable
from functools import partial
from typing import cast

from xdsl.utils.target import Target

from comet.registry import imported

TARGETS = {
    "comet": "comet:CometTarget",
    "taxes": "taxes:TaxesTarget",
    "triton": "triton:TritonTarget",
}
"""The module of each target, below this package, and its class."""


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Return a factory for every target of comet, by name."""
    return {name: partial(_target, path) for name, path in TARGETS.items()}


def _target(path: str) -> type[Target]:
    return cast(type[Target], imported(f"comet.codegen.{path}"))
