"""The quick search of `comet-accelerator` among the choices that constraints leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.schedule.attributes import BindingKind
from comet.passes.explore.choices import Bindings
from comet.passes.explore.config import ChosenPasses
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.quick import AcceleratorPipeline
from comet.passes.explore.structure import Structure
from comet.passes.schedule.fuse.strategy import STRATEGIES, Chunks, Loops, Strategy
from comet.passes.schedule.tile.accelerator import search
from comet.passes.search import FREE, Found, cost_of
from comet.passes.sharding.dim_axes import Dims


@dataclass(frozen=True)
class ConstrainedPipeline(AcceleratorPipeline):
    """The passes of `comet-accelerator`, whose choices `limits` limit."""

    limits: Constraints = field(default_factory=Constraints)

    @property
    def is_sequential(self) -> bool:
        """Whether nodes run one after the other: if constraints leave that open."""
        return BindingKind.SEQUENTIAL in self.limits.bindings

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

    def mapped(
        self, ctx: Context, module: ModuleOp, sharded: ChosenPasses, strategy: Strategy
    ) -> Found[ChosenPasses]:
        """
        Map a copy of a sharded module; return the passes and the cost.

        Unlike `tile`, it knows factors of a part of the nodes, and bindings before
        factors: the children of each node are bound by the first kind that is open.
        """
        if self.is_sequential and not self.limits.factors:
            return super().mapped(ctx, module, sharded, strategy)
        structure = Structure("", module, sharded.passes, strategy, FREE)
        if not self.is_sequential:
            tree = structure.tree()
            structure = replace(structure, fused=tree, after=self._bound(tree))
        space = structure.factor_space(self.limits)
        plan = search(space.template, self.goal, space.fixed)
        passes = structure.passes_of(plan, self.model)
        return Found(replace(sharded, passes=passes), cost_of(plan.estimate))

    def _bound(self, tree: ModuleOp) -> tuple[ModulePass, ...]:
        """
        Return the passes that bind the children of each node of a tree.

        Raises PassFailedException if a node has no legal kind.
        """
        for _, passes in Bindings(self.limits).options(tree):
            return passes
        kinds = ", ".join(map(str, self.limits.bindings))
        raise PassFailedException(f"a node has children that cannot be bound: {kinds}")
