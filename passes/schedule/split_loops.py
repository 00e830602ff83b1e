"""Splits a node in two, so that ops can be between its loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Region, SSAValue

from comet.dialects.blocks import copy_names
from comet.dialects.compound.dims import level_of, names_of, with_extents, with_level
from comet.dialects.schedule import TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.node import combine_attr


def split_loops(node: TemporalOp, depth: int) -> TemporalOp:
    """
    Move all but the first `depth` loops of `node` to a new node in its body; return it.

    Both have the same name. Results of the inner node are at the level of its body,
    unless its loops concatenate them.
    """
    outer, inner = tuple(node.loops)[:depth], tuple(node.loops)[depth:]
    extents = {cut.dim: cut.tile for cut in node.cuts()[:depth]}
    values = (*node.ins, *node.iter_args)
    types = [with_extents(value.type, extents) for value in values]
    block = Block(arg_types=(*types, *(value.type for value in node.with_args)))
    copy_names(node.body.block.args, block.args)
    count, combiners = len(node.ins), node.combiners
    end = count + len(node.iter_args)
    inside = TemporalOp(
        inner,
        block.args[:count],
        block.args[count:end],
        [
            with_level(with_extents(out.type, extents), _level(out, tile, inner))
            for out, tile in zip(node.outs, node.yielded, strict=True)
        ],
        _combiners_over(inner, node.outs, combiners),
        node.detach_region(node.body),
        block.args[end:],
    )
    inside.name_attr, inside.partial = node.name_attr, node.partial
    copy_names(node.outs, inside.outs)
    block.add_ops([inside, YieldOp(*inside.outs)])
    node.add_region(Region(block))
    node.properties["loops"] = ArrayAttr(outer)
    node.properties.pop("combine", None)
    # With ops between them, loops are not one.
    node.properties.pop("coalesce", None)
    combine = combine_attr(_combiners_over(outer, node.outs, combiners))
    if combine is not None:
        node.properties["combine"] = combine
    return inside


def _level(out: SSAValue, tile: SSAValue, loops: Sequence[LoopAttr]) -> str | None:
    """
    Return the level of a result after some loops.

    The level of the node's result if the loops concatenate its tiles, else that of a
    tile.
    """
    names = names_of(out)
    concatenated = any(loop.factor > 1 and loop.dim in names for loop in loops)
    return level_of(out if concatenated else tile)


def _combiners_over(
    loops: Sequence[LoopAttr], outs: Sequence[SSAValue], combiners: Sequence[Combiner]
) -> list[Combiner]:
    """Return the combiners of a node's results if it had only these loops."""
    dims = {loop.dim for loop in loops}
    return [
        Combiner.NONE if dims <= set(names_of(out)) else combiner
        for out, combiner in zip(outs, combiners, strict=True)
    ]
