"""The smallest tiles of a tile tree on an accelerator, which fit if any do."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.factors import Loops
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.schedule.tile.template import Factor, Key, Plan, Template


def finest(template: Template) -> Plan:
    """Return the smallest tiles: the outermost loop of each dimension cuts it to 1."""
    cut: set[Factor] = set()
    plan: dict[Key, Loops] = {}
    for key, dims in template.loops.items():
        nodes = [node for node in template.nodes if template.keys[node] == key]
        above = {
            template.keys[n] for node in nodes for n in template.above[node.body.block]
        }
        plan[key] = tuple(
            (dim, 1 if cut & {(k, dim) for k in above} else template.extent[key, dim])
            for dim in dims
        )
        cut |= {(key, dim) for dim in dims}
    return plan


def in_one_order(plan: Plan) -> Plan:
    """Return a plan whose nodes have their loops in the order of the first nodes."""
    every = list(dict.fromkeys(dim for loops in plan.values() for dim, _ in loops))
    return {
        key: tuple(sorted(loops, key=lambda loop: every.index(loop[0])))
        for key, loops in plan.items()
    }


def finest_with(template: Template, fixed: Mapping[Factor, int]) -> Plan:
    """
    Return the smallest tiles with the `fixed` factors.

    Raises PassFailedException if these do not divide the extents.
    """
    space, chosen = FactorSpace.of(template), dict(fixed)
    loops = [(key, dim) for key, dims in template.loops.items() for dim in dims]
    for key, dim in loops:
        if (key, dim) not in fixed:
            values = space.dividing_values((key, dim), chosen)
            if not values.size:
                raise PassFailedException(
                    f"tile: the fixed factors leave none for {dim}; they have to "
                    "divide the extents"
                )
            chosen[key, dim] = int(values.max())
    return {
        key: tuple((dim, chosen[key, dim]) for dim in dims)
        for key, dims in template.loops.items()
    }
