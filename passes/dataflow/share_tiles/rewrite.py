"""Rewrites a kernel so that its programs have equal runs of a list of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from comet.dialects.blocks import copy_names
from comet.dialects.compound import IndexOp, MapKind, MapOp, RenameOp
from comet.dialects.compound.dims import (
    ceil_div,
    element_type_of,
    extents_of,
    level_of,
    names_of,
    tensor,
    with_extents,
    with_level,
    with_names,
)
from comet.dialects.dataflow import ArriveOp, SharesOp
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.dataflow.share_tiles.analysis import (
    PartialFold,
    whole_of,
)
from comet.passes.schedule.retile import retile_node, set_loops


def share_tiles(found: PartialFold, runs: int, registers: int) -> None:
    """
    Let programs do equal runs of the list of the tiles of all sequences.

    Their threads have `registers` at most, if that is not 0.
    """
    tile, positions = found.tile, found.positions
    shares = SharesOp(
        found.lengths,
        found.part,
        found.parts,
        offset=found.offset,
        tiles=ceil_div(positions, tile),
        size=tile,
        runs=runs,
    )
    for result, name in zip(shares.results, ("first", "end", "count"), strict=True):
        result.name_hint = name
    Rewriter.insert_op(shares, InsertPoint.before(found.split))
    level = level_of(found.fold.tiles[found.seen.operand])
    _count_from_first(found)
    _see_whole(found, tile, positions)
    _bound(found, shares, level)
    _merge_counted(found, shares, level)
    launch = found.split.launch or LaunchAttr()
    programs = runs * found.lists
    found.split.launch = launch.replaced(persistent=programs, registers=registers)


def _count_from_first(found: PartialFold) -> None:
    """Let positions count from the first of a sequence, not from that of a part."""
    fold = found.fold
    assert found.seen.start is not None
    start = fold.tiles[found.seen.start]
    for use in list(start.uses):
        add = use.operation
        assert isinstance(add, MapOp)
        assert add.kind.data is MapKind.ADD
        add.result.replace_all_uses_with(add.inputs[1 - use.index])
        Rewriter.erase_op(add)


def _see_whole(found: PartialFold, tile: int, positions: int) -> None:
    """Let a program read whole sequences: operands lose the dimension of parts."""
    split, fold = found.split, found.fold
    extent = {found.inner: positions}
    operands = list(before := split.ins)
    for index, (value, argument) in enumerate(zip(split.ins, split.tiles, strict=True)):
        if found.inner not in names_of(value):
            continue
        operands[index] = _whole(value, found, positions)
        type_ = with_extents(_without(argument, found.part), extent)
        Rewriter.replace_value_with_new_type(argument, type_)
    split.set_operands(operands, split.with_args)
    set_loops(fold, [LoopAttr(found.inner, ceil_div(positions, tile))])
    _retype(split.body.block, found.part)
    for node in (fold, split):
        _drop_unused(node)
    _erase_unused(before)


def _whole(value: SSAValue, found: PartialFold, positions: int) -> SSAValue:
    """Insert and return an operand of the node with whole sequences."""
    source = whole_of(value, found)
    assert source is not None
    if isinstance(value.owner, IndexOp):
        new: Operation = IndexOp(with_extents(value.type, {found.inner: positions}))
    else:
        op = value.owner
        assert isinstance(op, RenameOp)
        assert op.cut is not None
        names = op.renaming | {op.cut: found.inner}
        new = RenameOp(source, with_names(source.type, names))
    new.results[0].name_hint = value.name_hint
    Rewriter.insert_op(new, InsertPoint.before(found.split))
    return new.results[0]


def _without(value: SSAValue, dim: str) -> Attribute:
    """Return the type of a value without a dimension of it."""
    extents = {name: n for name, n in extents_of(value).items() if name != dim}
    return tensor(extents, element_type_of(value), level_of(value))


def _retype(block: Block, dim: str) -> None:
    """Take a dimension from all values computed of what does not have it."""
    for op in block.ops:
        if isinstance(op, NodeOp):
            for value, argument in op.sliced:
                _lose(argument, (value,), dim)
            _retype(op.body.block, dim)
            for out, value in zip(op.outs, op.yielded, strict=True):
                _lose(out, (value,), dim)
        elif op.operands:
            for result in op.results:
                _lose(result, op.operands, dim)


def _lose(value: SSAValue, sources: Sequence[SSAValue], dim: str) -> None:
    """Take a dimension from the type of a value if none of its sources has it."""
    if dim in names_of(value) and not any(dim in names_of(v) for v in sources):
        Rewriter.replace_value_with_new_type(value, _without(value, dim))


def _drop_unused(node: NodeOp) -> None:
    """Remove the operands of a node that its body does not use, and their ops."""
    for op in reversed(list(node.body.block.ops)):
        is_dead = not any(result.uses for result in op.results)
        if op.results and is_dead and is_side_effect_free(op):
            Rewriter.erase_op(op)
    for index in reversed(range(len(node.ins))):
        if not node.tiles[index].uses:
            value = node.ins[index]
            node.drop_operand(index)
            _erase_unused([value])


def _erase_unused(values: Sequence[SSAValue]) -> None:
    """Erase the views and positions that nothing reads any more."""
    for value in values:
        if isinstance(op := value.owner, IndexOp | RenameOp) and not value.uses:
            Rewriter.erase_op(op)


def _read(node: NodeOp, value: SSAValue, level: str | None, tile: int = 1) -> SSAValue:
    """Add an operand, of which the body of a node has tiles; return its argument."""
    extents = dict.fromkeys(extents_of(value), tile)
    type_ = with_level(with_extents(value.type, extents), level)
    argument = node.body.block.insert_arg(type_, len(node.ins))
    argument.name_hint = value.name_hint
    node.set_operands((*node.ins, value), node.with_args)
    return argument


def _read_in_loop(
    found: NodeOp, loop: TemporalOp, value: SSAValue, level: str | None
) -> IntegerAttr[I64]:
    """Add an operand to a node and to a loop in it; return its index there."""
    tile = _read(found, value, level)
    _read(loop, tile, level)
    return IntegerAttr(len(loop.ins) - 1, i64)


def _bound(found: PartialFold, shares: SharesOp, level: str | None) -> None:
    """Let the loop over the tiles of a sequence run those of the program's share."""
    split, fold = found.split, found.fold
    fold.first = _read_in_loop(split, fold, shares.first, level)
    fold.end = _read_in_loop(split, fold, shares.end, level)


def _merge_counted(found: PartialFold, shares: SharesOp, level: str | None) -> None:
    """Let the last of the programs that arrive merge the parts that there are."""
    merge, loop, arrive = found.merge, found.merging, found.arrive
    (parts,) = (each.dim for each in loop.loops)
    set_loops(loop, [LoopAttr(parts, shares.parts)])
    retile_node(merge)
    loop.end = _read_in_loop(merge, loop, shares.count, level)
    counted = ArriveOp(
        arrive.partials,
        arrive.counters,
        shares.parts,
        arrive.semantics.data,
        arrive.scope.data,
        arrive.fence is not None,
        shares.count,
    )
    copy_names(arrive.complete, counted.complete)
    Rewriter.replace_op(arrive, counted)
