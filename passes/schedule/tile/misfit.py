"""Why no tiles of a tile tree are legal on an accelerator."""

from __future__ import annotations

import numpy as np
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.legality import check_summed, check_tool
from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError, ModelName
from comet.cost.from_ir.capacity import Sizes, describe_overflow, overflow
from comet.dialects.blocks import defined_in
from comet.dialects.compound.dims import extents_of, level_of
from comet.passes.analysis.levels import compute_block
from comet.passes.schedule.tile.candidates import Candidates, single
from comet.passes.schedule.tile.template import Plan, Template


class NothingFits(PassFailedException):
    """No tiles of a tile tree fit the memory levels, not even the finest."""


def misfit_error(
    template: Template, plan: Plan, model: ModelName
) -> PassFailedException:
    """Return the error that says why the finest tiles are not legal."""
    only = single(template, plan)
    sizes = Sizes(
        lambda value: int(np.max(only.bytes_of(value))),
        lambda node: int(np.max(only.iterations(node))),
    )
    block = compute_block(template.func)
    if (found := overflow(block, template.system, sizes)) is not None:
        return NothingFits(
            "tile: no valid mapping; with the finest tiles, "
            f"{describe_overflow(found, template.system)}"
            f"{_uncut(only, found.level)}: fuse less, give products loops of their "
            "own (loops=separate), shard another dimension, or stream"
        )
    problem = template.problem_for(plan)
    try:
        check_summed(problem, template.hardware)
        check_tool(problem, template.hardware)
        price(problem, template.hardware, model)
    except CostError as error:
        return PassFailedException(f"tile: no valid mapping; {error}")
    return PassFailedException("tile: no valid mapping")


def _uncut(only: Candidates, level: str) -> str:
    """
    Return the part of an error about the largest tile at a level.

    It names the dimensions that no loop around the tile may cut, empty if there are
    none.
    """
    template = only.template
    tiles = [
        (int(np.max(only.bytes_of(value))), block, value)
        for block in template.above
        for value in defined_in(block)
        if level_of(value) == level
    ]
    _, block, largest = max(tiles, key=lambda tile: tile[0])
    around = {template.keys[node] for node in template.above[block]}
    looped = {dim for key in around for dim in template.loops[key]}
    uncut = [
        f"{dim} = {extent}"
        for dim, extent in extents_of(largest).items()
        if extent > 1 and dim not in looped
    ]
    if not uncut:
        return ""
    return (
        f"; no loop around it may cut {' and '.join(uncut)}, as ops of the same nest "
        "need whole reductions over them"
    )
