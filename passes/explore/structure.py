"""
One way to stream, shard, and fuse a program: a tile tree without factors.

The factors and the loop orders of its template are still open.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.legality import check_bindings, check_structure
from comet.cost.estimate import CostError, ModelName
from comet.dialects.arch import attached_system
from comet.passes.analysis.functions import compute_functions
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore.constraints import Constraints
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.accelerator.plan import fuse_function
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.schedule.tile.accelerator import TilePlan
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.schedule.tile.template import Factor, make_template
from comet.passes.search import Cost

REJECTED = (PassFailedException, CostError)
"""The exceptions of passes for a structure that has no mapping."""


@dataclass(frozen=True)
class Structure:
    """One way to stream, shard, and fuse a program."""

    label: str
    module: ModuleOp
    """The program after `passes`."""
    passes: tuple[ModulePass, ...]
    """The passes before fusion."""
    strategy: Strategy
    bound: Cost
    """A lower bound for all its mappings."""
    after: tuple[ModulePass, ...] = ()
    """The passes on the tile tree."""
    fused: ModuleOp | None = None
    """The tree before these, if structures with other such passes share it."""

    def tree(self) -> ModuleOp:
        """
        Return the program as a tile tree without factors.

        Raises PassFailedException if there is none.
        """
        copy = (self.fused or self.module).clone()
        if self.fused is None:
            (func,) = compute_functions(copy)
            fuse_function(func, attached_system(copy), self.strategy)
        for pass_ in self.after:
            pass_.apply(Context(), copy)
        return copy

    def factor_space(self, constraints: Constraints) -> FactorSpace:
        """
        Return the open factors and loop orders of the tile tree.

        Raises PassFailedException or CostError if there is no legal tree.
        """
        copy = self.tree()
        (func,) = compute_functions(copy)
        template = make_template(func, attached_system(copy))
        check_structure(template.problem, template.hardware)
        check_bindings(template.problem)
        space = FactorSpace.of(template)
        return space.fixing(_fixed(space, constraints))

    def passes_of(self, plan: TilePlan, model: ModelName) -> tuple[ModulePass, ...]:
        """Return the passes that make the mapping of a plan, from the program on."""
        strategy = self.strategy
        return (
            *self.passes,
            FusePass(strategy.name, strategy.chunks, strategy.loops),
            TilePass(factors=format_plan(plan.entries())),
            *self.after,
            AnnotateCostPass(model=model),
            LowerToCometPass(),
        )


def _fixed(space: FactorSpace, constraints: Constraints) -> dict[Factor, int]:
    """Return the factors that constraints fix."""
    template = space.template
    named = {node.node_name: key for node, key in template.keys.items()}
    fixed: dict[Factor, int] = {}
    for entry in constraints.factors:
        if (key := named.get(entry.name)) is None:
            raise PassFailedException(
                f"the constraint 'factors' names the node {entry.name}, and the tree "
                f"has {', '.join(str(name) for name in named)}"
            )
        for dim, factor in entry.loops:
            if dim not in template.loops[key]:
                names = ", ".join(template.loops[key]) or "no dimension"
                raise PassFailedException(
                    f"the constraint 'factors' loops over {dim} in {entry.name}, which "
                    f"can loop over {names}"
                )
            fixed[key, dim] = factor
    return fixed
