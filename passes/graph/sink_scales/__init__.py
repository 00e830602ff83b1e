"""
`sink-scales`: elementary level -> the same, with products scaled after their sums.

A factor without the dimensions that a product sums is the same in all terms:
sum_k (x_mk r_m) w_kn = r_m sum_k x_mk w_kn, by distributivity. So RMSNorm before a
product becomes a factor of its result. The sum of squares and the product then share a
loop over x; before, the product had to wait for the sum.

`auto` needs the hardware of a GPU. Runs after `stream`, which matches quotients in
their original place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.dialects.arch import attached_system
from comet.dialects.errors import about
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.graph.sink_scales.choose import chosen
from comet.passes.graph.sink_scales.plan import plan_scales
from comet.passes.graph.sink_scales.rewrite import rewrite

Scales: TypeAlias = Literal["auto", "all", "none"]
"""Which scales are sunk."""


@dataclass(frozen=True)
class SinkScalesPass(ModulePass):
    """Multiply products by the factors of their operands."""

    name = "sink-scales"

    scales: Scales = "auto"
    """
    Which factors move behind products: `all`; `none`; or `auto`, those that are
    reductions over the dimensions that the product sums, if that is faster. With `auto`
    none moves behind a cast to a type of smaller range, such as f16: the unscaled value
    could overflow there.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that is no reference."""
        if self.scales == "none":
            return
        system = attached_system(op) if self.scales == "auto" else None
        if system is not None:
            require_gpu(self.name, system)
        for func in functions_at(op, self.name, IRLevel.ELEMENTARY):
            plan = plan_scales(func, every=system is None)
            with about(func):
                rewrite(plan if system is None else chosen(func, plan, system))
