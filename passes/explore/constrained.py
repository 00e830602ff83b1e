"""The quick search of `comet-accelerator` among the choices that constraints leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.dialects.schedule.attributes import BindingKind
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.quick import AcceleratorPipeline
from comet.passes.schedule.fuse.strategy import STRATEGIES, Chunks, Loops, Strategy
from comet.passes.sharding.dim_axes import Dims


@dataclass(frozen=True)
class ConstrainedPipeline(AcceleratorPipeline):
    """The passes of `comet-accelerator`, whose choices `limits` limit."""

    limits: Constraints = field(default_factory=Constraints)

    @property
    def meets_all(self) -> bool:
        """
        Whether its mappings meet the constraints.

        It has no choice of bindings, and knows no factors of a part of the nodes.
        """
        limits = self.limits
        return not limits.factors and BindingKind.SEQUENTIAL in limits.bindings

    def forms(self, ctx: Context, module: ModuleOp) -> Iterator[tuple[bool, ModuleOp]]:
        """Yield each open choice of `stream`, with the streamed module."""
        for stream, form in super().forms(ctx, module):
            if stream in (self.limits.stream or (False, True)):
                yield stream, form

    def open_dims(self, module: ModuleOp) -> Sequence[Dims]:
        """Return the choices of sharded dimensions, at least one."""
        return self.limits.dim or super().open_dims(module)

    def strategies(self, func: FuncOp) -> Sequence[Strategy]:
        """Return the open fusion strategies of a sharded function."""
        limits = self.limits
        return [
            strategy
            for strategy in super().strategies(func)
            if strategy.name in (limits.strategy or STRATEGIES)
            and strategy.chunks in (limits.chunks or get_args(Chunks))
            and strategy.loops in (limits.loops or get_args(Loops))
        ]
