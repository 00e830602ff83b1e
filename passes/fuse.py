"""The `fuse` pass: elementary ops to a tile tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.compound import ExtentOp, FoldOp
from comet.dialects.compound_dims import extents_of
from comet.passes.dependence import loaded_dims
from comet.passes.levels import IRLevel, compute_block, functions_at
from comet.passes.pipeline import ChoosingPass
from comet.passes.sweeps import reduced_dims

STRATEGY = "comet.strategy"
"""The attribute of a function that names the strategy that was chosen."""

CHUNKS = "comet.chunks"
"""On accelerators, the one that says where its folds were chosen to stand."""

BETWEEN = "comet.between"
"""On GPUs, the one that says what was chosen for products that are needed twice."""


@dataclass(frozen=True)
class FusePass(ChoosingPass):
    """
    Create the schedule level: say which ops share a nest, and dissolve `spmd`.

    Before: elementary ops, with or without `collective.spmd`. After: a tree of
    `schedule` nodes without factors, ready for `tile`. Needs attached hardware.
    """

    name = "fuse"

    NOTES: ClassVar[Mapping[str, str]] = {
        "strategy": STRATEGY,
        "chunks": CHUNKS,
        "between": BETWEEN,
    }

    strategy: Literal["none", "apart", "partial", "full", "auto"] = "none"
    """
    How far intermediates travel: through the outermost level, so far only from and to
    contractions (accelerators), not that far for some of them, or nowhere; or the
    cheapest of these.
    """

    chunks: Literal["shared", "root", "auto"] = "shared"
    """
    On accelerators, where the loop of a fold stands: over the shared buffer, or over
    the outermost level, so that chunks come in while others are worked on; the cheaper.
    """

    between: Literal["recompute", "spill", "auto"] = "auto"
    """
    On GPUs, what two sweeps over a row do about a product that both need: compute it
    twice, or keep it in device memory; the cheaper of these.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from comet.passes import fuse_accelerator, fuse_auto, fuse_gpu_choice

        system = attached_system(op)
        for func in functions_at(op, self.name, IRLevel.ELEMENTARY, IRLevel.SPMD):
            check_folds(func)
            check_constants(func)
            if system.gpu is not None:
                if self.strategy == "apart":
                    raise PassFailedException(
                        "fuse: strategy=apart is for accelerators; use partial, which "
                        "gives a product a kernel of its own, on GPUs"
                    )
                options = self.strategy, self.between
                fuse_gpu_choice.fuse_function(func, system, *options)
                continue
            first, *others = fuse_auto.ways(func, self.strategy, self.chunks)
            if others:
                fuse_auto.fuse_function(func, system, (first, *others))
            else:
                fuse_accelerator.fuse_function(func, system, *first)


def check_folds(func: FuncOp) -> None:
    """
    Check that no fold takes one element at a time, as loops have tiles of any size.

    Raises PassFailedException if one does.
    """
    for op in func.walk():
        if isinstance(op, FoldOp) and op.element_by_element:
            dim = op.dim.data
            if any(extents_of(value).get(dim, 1) > 1 for value in op.ins):
                raise PassFailedException(
                    f"fuse: the step of a fold over {dim} takes one element at a time, "
                    "and a loop takes tiles of any size; write the step for chunks of "
                    f"the whole extent of {dim}"
                )


def check_constants(func: FuncOp) -> None:
    """
    Check that no dimension of constants is reduced: a loop has that of what it loads.

    Raises PassFailedException if one is.
    """
    block = compute_block(func)
    loaded = loaded_dims(block)
    for op in block.ops:
        known = frozenset[str]().union(*(loaded[value] for value in op.operands))
        counts = isinstance(op, ExtentOp) or not op.results
        for dim in () if counts else reduced_dims(op):
            if dim not in known:
                name = op.results[0].name_hint or op.name
                raise PassFailedException(
                    f"fuse: %{name} is reduced over {dim}, which only constants have; "
                    "write what it is without a reduction"
                )
