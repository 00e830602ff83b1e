"""References: functions that define what other functions of a module compute."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

REFERENCE = "comet.reference"
"""The unit attribute of a reference."""


def is_reference(func: FuncOp) -> bool:
    """Return whether `func` is a reference, which passes do not rewrite."""
    return REFERENCE in func.attributes


def reference_name(name: str) -> str:
    """Return the symbol of the reference of the function called `name`."""
    return f"{name}__reference"
