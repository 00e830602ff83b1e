"""
`deduplicate-kernels`: `tl` -> the same, where equal kernels are one function.

The layers of a model have equal kernels with different names, and Triton compiles every
kernel of a module. Of equal kernels only the first stays, and all launches use it. Two
kernels are equal if they differ only in comments and in the names of kernels and
values.
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
    """Keep only the first of equal kernels, and launch it instead of the others."""

    name = "deduplicate-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, first_equals(op))


def first_equals(module: ModuleOp) -> dict[str, str]:
    """Return the name of each duplicate, with that of the first kernel equal to it."""
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
    """Return a key that is equal for kernels with equal code; no names or comments."""
    described = Description(without=(tl.COMMENT,))
    described.values(kernel.body.block.args)
    described.operations(kernel.body.block.ops)
    return described.so_far


def rewrite(module: ModuleOp, equals: Mapping[str, str]) -> None:
    """Launch the first kernels in place of their duplicates, and erase these."""
    for op in tuple(module.walk()):
        if isinstance(op, tl.LaunchOp) and (name := op.kernel.string_value()) in equals:
            op.kernel = SymbolRefAttr(equals[name])
        elif isinstance(op, tl.KernelOp) and op.sym_name.data in equals:
            op.detach()
            op.erase()
