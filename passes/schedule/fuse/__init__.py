"""The `fuse` pass: elementary ops to a tile tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.blocks import yielded_by
from comet.dialects.compound import ExtentOp, FillOp, FoldOp, View
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.errors import OpError, called
from comet.dialects.schedule.attributes import NARROW
from comet.passes.analysis.dependence import loaded_dims
from comet.passes.analysis.levels import IRLevel, compute_block
from comet.passes.analysis.reduction_loops import reduced_dims
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.fuse.machine import FuseOptions, Machine
from comet.passes.schedule.fuse.strategy import (
    BETWEEN,
    CHUNKS,
    KERNELS,
    LOOPS,
    STRATEGY,
)


@dataclass(frozen=True)
class FusePass(ChoosingPass, FunctionPass, FuseOptions):
    """
    Create the schedule level: group ops into loop nests or kernels, and dissolve
    `spmd`.

    Before: elementary ops, with or without `collective.spmd`. After: a tree of
    `schedule` nodes without factors, ready for `tile`. Needs attached hardware. Erases
    ops whose results have no uses.
    """

    name = "fuse"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    NOTES: ClassVar[Mapping[str, str]] = {
        "strategy": STRATEGY,
        "chunks": CHUNKS,
        "loops": LOOPS,
        "between": BETWEEN,
        "kernels": KERNELS,
        "narrow": NARROW,
    }

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_system(module)
        self.goal.check(self.name, on_gpu=system.gpu is not None)
        machine = fusion_machine(system)
        machine.simplify(function)
        check_folds(function)
        check_constants(function, machine)
        machine.fuse(function, self)


def fusion_machine(system: SystemOp) -> Machine:
    """Return the machine of the attached hardware."""
    if system.gpu is None:
        from comet.passes.schedule.fuse.accelerator import Accelerator

        return Accelerator(system)
    from comet.passes.schedule.fuse.gpu import Gpu

    return Gpu(system)


def check_folds(func: FuncOp) -> None:
    """
    Raise PassFailedException for a fold that cannot be a loop over tiles of any size.

    Its step must compute every iter_arg, and must not take single elements.
    """
    for op in func.walk():
        if not isinstance(op, FoldOp):
            continue
        dim, step = op.dim.data, op.step.block
        for value in yielded_by(step):
            if value.owner not in (step, *step.ops):
                raise OpError(
                    op,
                    f"fuse: the step of a fold over {dim} yields {called(value)}, "
                    "which it does not make; compute every iter_arg in the step",
                )
        sizes = [extents_of(value).get(dim, 1) for value in op.ins]
        if op.element_by_element and max(sizes) > 1:
            raise OpError(
                op,
                f"fuse: the step of a fold over {dim} takes one element at a time, "
                "and a loop takes tiles of any size; write the step for chunks of "
                f"the whole extent of {dim}",
            )


def check_constants(func: FuncOp, machine: Machine) -> None:
    """
    Raise PassFailedException for an op with a dimension that only constants have.

    No loop can have it, as loops slice operands. Some machines need no loop to compute
    constants.
    """
    block = compute_block(func)
    loaded = loaded_dims(block)
    for op in block.ops:
        if isinstance(op, FillOp | ExtentOp | View) or not op.results:
            continue
        dims = frozenset[str]().union(*(loaded[value] for value in op.operands))
        name = op.results[0].name_hint or op.name
        for dim in reduced_dims(op):
            if dim not in dims:
                raise OpError(
                    op,
                    f"fuse: %{name} is reduced over {dim}, which only constants have; "
                    "write its value without a reduction",
                )
        for result in () if machine.computes_in_place(op) else op.results:
            for dim in names_of(result):
                if dim not in loaded[result]:
                    raise OpError(
                        op,
                        f"fuse: %{name} has the dimension {dim}, which only constants "
                        "have; make the constant an argument of the function",
                    )
