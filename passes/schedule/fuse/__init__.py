"""The `fuse` pass: elementary ops to a tile tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.compound import ExtentOp, FillOp, FoldOp
from comet.dialects.compound.dims import extents_of, names_of
from comet.passes.analysis.dependence import is_constant, loaded_dims
from comet.passes.analysis.levels import IRLevel, compute_block, functions_at
from comet.passes.analysis.reduction_loops import reduced_dims
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.fuse.notes import BETWEEN, CHUNKS, STRATEGY
from comet.passes.search.goal import Goal


@dataclass(frozen=True)
class FusePass(ChoosingPass):
    """
    Create the schedule level: say which ops share a nest, and dissolve `spmd`.

    Before: elementary ops, with or without `collective.spmd`. After: a tree of
    `schedule` nodes without factors, ready for `tile`. Needs attached hardware. Ops
    whose results nobody needs are dropped: they would be nodes without any.
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

    model: Literal["tool", "paper", "ideal"] = "paper"
    """The cost model that decides what is `auto`, see `annotate-cost`."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    """What of the cost decides: cycles, pJ, or their product."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        goal = Goal(self.model, self.objective)
        goal.check(self.name, system)
        on_gpu = system.gpu is not None
        for func in functions_at(op, self.name, IRLevel.ELEMENTARY, IRLevel.SPMD):
            prepare(func, on_gpu=on_gpu)
            if on_gpu:
                self._fuse_on_gpu(func, system)
            else:
                self._fuse_on_accelerator(func, system, goal)

    def _fuse_on_gpu(self, func: FuncOp, system: SystemOp) -> None:
        from comet.passes.schedule.fuse.gpu.choice import fuse_function

        if self.strategy == "apart":
            raise PassFailedException(
                "fuse: strategy=apart is for accelerators; use partial, which gives a "
                "product a kernel of its own, on GPUs"
            )
        fuse_function(func, system, self.strategy, self.between)

    def _fuse_on_accelerator(self, func: FuncOp, system: SystemOp, goal: Goal) -> None:
        from comet.passes.schedule.fuse import accelerator as fuse_accelerator
        from comet.passes.schedule.fuse.accelerator import auto as fuse_auto

        first, *others = fuse_auto.open_strategies(func, self.strategy, self.chunks)
        if others:
            fuse_auto.fuse_function(func, system, (first, *others), goal)
        else:
            fuse_accelerator.fuse_function(func, system, first)


def prepare(func: FuncOp, *, on_gpu: bool) -> None:
    """
    Drop the ops whose results nobody needs, and check that nests can hold the others.

    Raises PassFailedException with the reason if none can.
    """
    region_dce(func.body)
    check_folds(func)
    check_constants(func, on_gpu=on_gpu)


def check_folds(func: FuncOp) -> None:
    """
    Check that each fold is a loop: its step makes its carries, from any tile.

    Raises PassFailedException if one is not.
    """
    for op in func.walk():
        if not isinstance(op, FoldOp):
            continue
        dim, step = op.dim.data, op.step.block
        terminator = step.last_op
        for value in () if terminator is None else terminator.operands:
            if value.owner not in (step, *step.ops):
                raise PassFailedException(
                    f"fuse: the step of a fold over {dim} yields %{value.name_hint}, "
                    "which it does not make; compute every carry in the step"
                )
        sizes = [extents_of(value).get(dim, 1) for value in op.ins]
        if op.element_by_element and max(sizes) > 1:
            raise PassFailedException(
                f"fuse: the step of a fold over {dim} takes one element at a time, "
                "and a loop takes tiles of any size; write the step for chunks of "
                f"the whole extent of {dim}"
            )


def check_constants(func: FuncOp, *, on_gpu: bool) -> None:
    """
    Check that no op loops over a dimension of constants: a loop has those it loads.

    The kernels of a GPU compute constants where they use them, without a loop.
    Raises PassFailedException if an op does.
    """
    block = compute_block(func)
    loaded = loaded_dims(block)
    for op in block.ops:
        if isinstance(op, FillOp | ExtentOp) or not op.results:
            continue
        known = frozenset[str]().union(*(loaded[value] for value in op.operands))
        name = op.results[0].name_hint or op.name
        for dim in reduced_dims(op):
            if dim not in known:
                raise PassFailedException(
                    f"fuse: %{name} is reduced over {dim}, which only constants have; "
                    "write what it is without a reduction"
                )
        for result in () if on_gpu and _computed_in_place(op) else op.results:
            for dim in names_of(result):
                if dim not in loaded[result]:
                    raise PassFailedException(
                        f"fuse: %{name} has the dimension {dim}, which only constants "
                        "have; make the constant an argument of the function"
                    )


def _computed_in_place(op: Operation) -> bool:
    """Return whether an op makes constants, and only for other ops."""
    return all(
        is_constant(result) and all(use.operation.results for use in result.uses)
        for result in op.results
    )
