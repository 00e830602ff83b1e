"""The functions of a module that passes rewrite, and their references."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

REFERENCE = "comet.reference"
"""The unit attribute of a reference: it defines what another function computes."""


def is_reference(func: FuncOp) -> bool:
    """Return whether `func` is a reference, which passes do not rewrite."""
    return REFERENCE in func.attributes


def reference_name(name: str) -> str:
    """Return the symbol of the reference of the function called `name`."""
    return f"{name}__reference"


def compute_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Yield the functions that passes rewrite: those with a body, no references."""
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp) and op.body.blocks and not is_reference(op):
            yield op
