"""The functions of a module that passes rewrite."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.dialects.reference import is_reference


def compute_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Yield the functions that passes rewrite: those with a body, no references."""
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp) and op.body.blocks and not is_reference(op):
            yield op
