"""
`pad`: elementary level -> elementary level, with larger extents in the body.

Arguments are padded at their first use and results sliced, so the signature stays.
Padding must hold the neutral element of the reductions that read it. An argument is
padded with that number if it is enough; otherwise a mask sets it before the reduction.
`compound.extent` keeps the true extents. Takes functions that are not sharded yet, for
accelerators: kernels of GPUs mask short tiles instead. `to=auto` needs the hardware.
Rejects unknown dimensions, extents smaller than the true ones, folds, and split
dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.dialects.arch import attached_system, find_system
from comet.dialects.errors import OpError
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.graph.pad.extents import (
    Extents,
    check_extents,
    new_extents,
    parse_extents,
    suitable_extents,
)
from comet.passes.graph.pad.plan import plan_padding
from comet.passes.graph.pad.rewrite import pad_function
from comet.passes.pipeline import AUTO
from comet.passes.sharding.boundary import says_sharding


@dataclass(frozen=True)
class PadPass(ModulePass):
    """Compute on larger extents, which divide evenly, and return the true positions."""

    name = "pad"

    to: str = AUTO
    """
    The padded extents, as in "N=272,K=128"; `auto` rounds dimensions up to multiples of
    the number of instances, if it does not divide them or they have few divisors.
    """

    def __post_init__(self) -> None:
        """Check the extents."""
        if self.to != AUTO:
            _ = parse_extents(self.to)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that has one of the dimensions."""
        functions = functions_at(op, self.name, IRLevel.ELEMENTARY)
        if (system := find_system(op)) is not None:
            require_accelerator(self.name, system)
        wanted = self.extents(op)
        check_extents(op, wanted)
        for func in functions:
            if says_sharding(func):
                raise OpError(
                    func,
                    f"pad: @{func.sym_name.data} is sharded already; run pad before "
                    "distribute",
                )
            true, padded = new_extents(func, wanted)
            pad_function(func, plan_padding(func, true, padded))

    def extents(self, module: ModuleOp) -> Extents:
        """Return the padded extents of the option; `auto` takes the least padding."""
        if self.to != AUTO:
            return parse_extents(self.to)
        found = suitable_extents(module, attached_system(module))
        return found[0] if found else {}
