"""The `annotate-cost` pass: writes the estimates of a cost model on ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError, ModelName
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.cost import Figures, annotate
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import IRLevel, functions_at


@dataclass(frozen=True)
class AnnotateCostPass(ModulePass):
    """
    Write estimates: `comet.cost` on functions or mappings, and on their nodes.

    Before: a tile tree with factors, or a mapping of the `comet` dialect, and attached
    hardware. After: the same, annotated. Accelerators are priced by the COMET files
    that the tree lowers to, a chain of mappings by the sum of theirs. Kernels of GPUs
    have estimates since `tile`; a launch plan gets the three taxes, as a whole and for
    each kernel and barrier.
    """

    name = "annotate-cost"

    model: ModelName = "paper"
    """The model of the COMET tool, the same without defects, or perfect overlap."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        try:
            for target, figures in plan_estimates(op, system, self.model):
                annotate(target, figures)
        except CostError as error:
            raise PassFailedException(f"annotate-cost: {error}") from error


def plan_estimates(
    module: ModuleOp, system: SystemOp, model: ModelName
) -> list[tuple[Operation, Figures]]:
    """
    Return the estimates of ops, each with its op; changes nothing.

    Raises CostError for a mapping that cannot be priced, and PassFailedException for a
    function that has no tile tree.
    """
    if system.gpu is None:
        from comet.passes.annotate_cost.accelerator import (
            PRICED,
            chain_estimates,
            function_estimates,
            mapping_estimates,
        )

        for estimates in (mapping_estimates, chain_estimates):
            if found := list(estimates(module, model)):
                return found
    else:
        from comet.passes.annotate_cost.gpu import PRICED, function_estimates
    name, levels = AnnotateCostPass.name, (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    functions = list(functions_at(module, name, *levels))
    for func in functions:
        if not any(isinstance(op, PRICED) for op in func.walk()):
            raise OpError(
                func,
                f"annotate-cost: @{func.sym_name.data} has no tile tree; run fuse and "
                "tile first",
            )
    return [
        figures
        for func in functions
        for figures in function_estimates(func, system, model)
    ]
