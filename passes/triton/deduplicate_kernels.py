"""
`deduplicate-kernels`: `tl` -> the same, without kernels that are equal to others.

The layers of a model have equal kernels under other names, and Triton compiles each one
that a module has. Their launches run the first of them. Kernels are equal if all but
comments and the names of kernels and values is. Modules without kernels stay as they
are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.passes import ModulePass

from comet.dialects import tl
from comet.dialects.description import Description


@dataclass(frozen=True)
class DeduplicateKernelsPass(ModulePass):
    """Let equal kernels be one."""

    name = "deduplicate-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, first_equals(op))


def first_equals(module: ModuleOp) -> dict[str, str]:
    """Return the kernels that are equal to an earlier one, with the first such one."""
    first: dict[Hashable, str] = {}
    found: dict[str, str] = {}
    for kernel in module.ops:
        if isinstance(kernel, tl.KernelOp):
            name = kernel.sym_name.data
            earlier = first.setdefault(_description(kernel), name)
            if earlier != name:
                found[name] = earlier
    return found


def _description(kernel: tl.KernelOp) -> Hashable:
    """Return what the code of a kernel is, without its names and comments."""
    described = Description(without=(tl.COMMENT,))
    described.values(kernel.body.block.args)
    described.operations(kernel.body.block.ops)
    return described.so_far


def rewrite(module: ModuleOp, equals: Mapping[str, str]) -> None:
    """Launch the kernels that others are equal to, and erase these."""
    for op in tuple(module.walk()):
        if isinstance(op, tl.LaunchOp) and (name := op.kernel.string_value()) in equals:
            op.kernel = SymbolRefAttr(equals[name])
        elif isinstance(op, tl.KernelOp) and op.sym_name.data in equals:
            op.detach()
            op.erase()
