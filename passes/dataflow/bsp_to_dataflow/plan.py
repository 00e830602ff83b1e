"""The plan of `bsp-to-dataflow` for a collective: its channel and its producer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.collective import AllGatherOp
from comet.dialects.collective.ops import MovingCollective
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import (
    bytes_of,
    ceil_div,
    extents_of,
    names_of,
    with_extents,
)
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.channel import ChannelMode, ChannelType
from comet.dialects.dataflow.locality import collective_of
from comet.dialects.dataflow.rank_loops import tile_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.dataflow.bsp_to_dataflow.copy_kernel import (
    CopyRules,
    CopyTiles,
    communication_tiles,
)


class Pattern(StrEnum):
    """How producers, collectives and consumers synchronize, from loose to tight."""

    BSP = "bsp"
    """A kernel sends, between barriers of all ranks."""
    WAIT = "wait"
    """A kernel sends; consumers wait for each rank's whole message."""
    PULL = "pull"
    """Consumers load the tiles of other ranks from their memory."""
    PUSH = "push"
    """A kernel sends; consumers wait block by block."""
    FUSED = "fused"
    """The kernel that computes a value sends each tile when it is computed."""


@dataclass(frozen=True)
class PatternRules:
    """The rules of a pattern for one collective."""

    mode: ChannelMode
    signals: bool = True
    by_block: bool = True
    by_producer: bool = False
    """Whether the kernel that computes a value is the producer of the channel."""
    by_consumer: bool = False
    """Whether an input, which no kernel computes, is sent by its first reader."""


PATTERN_RULES: Mapping[Pattern, PatternRules] = {
    Pattern.BSP: PatternRules(ChannelMode.PUSH, signals=False, by_block=False),
    Pattern.WAIT: PatternRules(ChannelMode.PUSH, by_block=False),
    Pattern.PULL: PatternRules(ChannelMode.PULL, by_producer=True),
    Pattern.PUSH: PatternRules(ChannelMode.PUSH),
    Pattern.FUSED: PatternRules(ChannelMode.PUSH, by_producer=True, by_consumer=True),
}


@dataclass(frozen=True)
class ChannelConfig:
    """How all collectives of a program become channels."""

    pattern: Pattern
    copies: CopyRules
    persistent: bool = False
    symmetric: bool = False
    """Whether inputs are in symmetric memory if possible."""
    by_source: bool = True
    """Whether consumers visit one source after another, or all of them together."""


@dataclass(frozen=True)
class ChannelPlan:
    """How one collective becomes a channel."""

    kernel: KernelOp
    """The collective's kernel, which is erased."""
    collective: MovingCollective
    ranks: int
    type: ChannelType
    signals: bool
    by_source: bool
    """Whether consumers visit one source after another, or all of them together."""
    blocks: Mapping[str, int]
    """How often the message is cut along each dimension into blocks with a flag."""
    producer: OpResult | None
    """The kernel result that its kernel stores to the channel; None if it is copied."""
    sending_consumer: KernelOp | None
    """
    The consumer that is also the producer: before it waits, it sends a copy of the
    input, or signals an input in symmetric memory. None if another kernel sends.
    """
    copy: CopyTiles
    """How a copy cuts the value."""
    input: SSAValue | None = None
    """The input of the program that is itself the memory of the channel, if one is."""


def collective_kernels(program: ProgramOp) -> list[KernelOp]:
    """Return the kernels that are collectives, in launch order."""
    return [kernel for kernel in program.kernels() if collective_of(kernel) is not None]


def check_collective(kernel: KernelOp, pattern: Pattern) -> None:
    """Raise `PassFailedException` unless a collective's kernel only moves a value."""
    collective = collective_of(kernel)
    assert collective is not None
    what = None
    if not isinstance(collective, MovingCollective):
        what = f"{collective.name} does more than move values; run lower-reductions"
    elif list(kernel.body.block.ops)[-2] is not collective:
        what = "it changes what it gathers; do that in a kernel of its own"
    if what is not None:
        raise PassFailedException(
            f"bsp-to-dataflow: pattern={pattern} does not apply to "
            f"@{kernel.sym_name.data}: {what} before fuse, then bsp, wait, pull, push "
            "and fused apply"
        )


def plan_transfer(
    kernel: KernelOp, config: ChannelConfig, factors: Mapping[str, int]
) -> ChannelPlan:
    """
    Return how the collective of `kernel` becomes a channel.

    `factors` says how often the copy kernel cuts dimensions; it chooses the others.
    """
    collective, rules = collective_of(kernel), PATTERN_RULES[config.pattern]
    assert isinstance(collective, MovingCollective)
    gather, split = moved_dims(collective)
    type_ = ChannelType(
        rules.mode, gather, split, collective.input.type, collective.result.type
    )
    result = moved_result(kernel) if rules.by_producer else None
    can_send = result is not None and obstacle(result, split) is None
    producer = result if can_send else None
    awaited = _awaited(kernel.results_[0]) if rules.by_block else {}
    ranks = collective.group_size
    copy = _copy_tiles(type_, awaited, factors, ranks, config.copies)
    tiles = copy.tiles
    if producer is not None:
        tiles = _producer_tiles(_grid_node(producer), type_)
    input_ = input_in_place(kernel) if config.symmetric else None
    blocks = _blocks(type_, awaited, tiles) if input_ is None else {}
    return ChannelPlan(
        kernel,
        collective,
        ranks,
        type_,
        rules.signals,
        config.by_source,
        blocks,
        producer,
        sending_consumer(kernel, rules, input_),
        copy,
        input_,
    )


def moved_dims(collective: MovingCollective) -> tuple[str, str | None]:
    """Return the dimension that is gathered, and the one that is split."""
    if isinstance(collective, AllGatherOp):
        return collective.dim.data, None
    return collective.concat.data, collective.split.data


def moved_result(kernel: KernelOp) -> OpResult | None:
    """Return the kernel result that a collective moves, None if it moves an input."""
    value = kernel.ins[0]
    if isinstance(value, OpResult) and isinstance(value.op, KernelOp):
        return value
    return None


def sending_consumer(
    kernel: KernelOp, rules: PatternRules, in_place: SSAValue | None
) -> KernelOp | None:
    """
    Return the kernel that sends an input: the first one that reads the collective.

    None if the operand is no input, or if a separate copy kernel has to send it.
    """
    program = kernel.parent
    assert program is not None
    if moved_result(kernel) is not None:
        return None
    consumers = {use.operation for use in kernel.results_[0].uses}
    found = (op for op in program.ops if isinstance(op, KernelOp) and op in consumers)
    first = next((op for op in found if collective_of(op) is None), None)
    if first is None or in_place is not None:
        return first
    return first if rules.by_consumer and extents_show_shards(kernel, first) else None


def extents_show_shards(kernel: KernelOp, other: KernelOp) -> bool:
    """
    Whether the extents in `other` tell shards from whole dimensions of `kernel`.

    They do not for a dimension of one element, whose shards are as large as the whole.
    """
    single = {dim for dim, extent in kernel.shard_extents.items() if extent == 1}
    values = (v for node in other.nodes for v in (*node.ins, *node.outs))
    used = {dim for value in values for dim in names_of(value)}
    return not used & single - other.shard_extents.keys()


def input_in_place(kernel: KernelOp) -> SSAValue | None:
    """
    Return the input of the program that the collective of `kernel` moves unchanged.

    None if it has another use: other readers, and the caller if the function returns
    it, expect the input at its usual address, which is not in symmetric memory.
    """
    value, collective = kernel.ins[0], collective_of(kernel)
    assert collective is not None
    if not isinstance(value, BlockArgument) or not kernel.results_[0].uses:
        return None
    single_use = all(outer.has_one_use() for outer in _up_to_function(value))
    unchanged = collective.operands[0] is kernel.body.block.args[0]
    return value if single_use and unchanged else None


def _grid_node(result: OpResult) -> SpatialOp | None:
    """Return the node on the grid that computes a kernel's result."""
    kernel = result.op
    assert isinstance(kernel, KernelOp)
    node = kernel.yielded[result.index].owner
    return node if isinstance(node, SpatialOp) else None


def obstacle(result: OpResult, split: str | None) -> str | None:
    """Return why the kernel of a result cannot store to a channel; None if it can."""
    node = _grid_node(result)
    if node is None:
        return "the kernel forwards what it has not made on its grid"
    if _viewed(result):
        return "the collective takes it under other dimension names"
    for dim in node.factors:
        tile = tile_of(node, dim)
        if node.last_cut(dim, 0).factor > 1 and not is_power_of_two(tile):
            return (
                f"its tiles of {tile} along {dim} are no power of two, so that programs"
                " are no tiles"
            )
    if split is not None and split not in node.factors and _loops_inside(node, split):
        return f"its programs make {split}, which is sharded over ranks, part by part"
    return None


def _viewed(result: OpResult) -> bool:
    """Whether a collective takes the value through a view."""
    users = [use.operation for use in result.uses]
    return any(
        isinstance(op, RenameOp)
        for user in users
        if isinstance(user, KernelOp) and collective_of(user) is not None
        for op in user.body.block.ops
    )


def _loops_inside(node: SpatialOp, dim: str) -> bool:
    """Whether loops concatenate tiles of a dimension in programs."""
    return any(
        isinstance(op, TemporalOp)
        and dim in op.factors
        and any(dim in extents_of(out) for out in op.outs)
        for op in node.body.walk()
    )


def _awaited(value: SSAValue) -> dict[str, int]:
    """Return the smallest tile, by dimension, in which consumers read a collective."""
    tiles: dict[str, int] = {}
    for use in value.uses:
        if isinstance(use.operation, KernelOp):
            argument = use.operation.body.block.args[use.index]
            names = {dim: dim for dim in extents_of(value)}
            for dim, tile in _grid_tiles(argument, names):
                tiles[dim] = min(tile, tiles.get(dim, tile))
    return tiles


def _grid_tiles(value: SSAValue, names: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the tile of each dimension that a grid cuts, by its name in `names`."""
    for use in value.uses:
        op: Operation = use.operation
        if isinstance(op, RenameOp):
            renamed = {op.renaming[dim]: name for dim, name in names.items()}
            yield from _grid_tiles(op.result, renamed)
        elif isinstance(op, SpatialOp):
            for dim, name in names.items():
                if op.factors.get(dim, 1) > 1:
                    yield name, tile_of(op, dim)


def _copy_tiles(
    type_: ChannelType,
    awaited: Mapping[str, int],
    factors: Mapping[str, int],
    ranks: int,
    rules: CopyRules,
) -> CopyTiles:
    """Choose how a copy kernel cuts the values of a channel."""
    extents = extents_of(type_.message)
    awaited = {dim: awaited[dim] for dim in extents if dim in awaited}
    tiles = communication_tiles(extents, awaited, rules)
    for dim, factor in factors.items():
        if dim in extents:
            tiles[dim] = _tile_for(dim, extents[dim], factor)
    size = bytes_of(with_extents(type_.message, tiles))
    if size > rules.most_bytes:
        shape = " x ".join(f"{dim}={tile}" for dim, tile in tiles.items())
        raise PassFailedException(
            f"bsp-to-dataflow: blocks make tiles of {shape} to send, {size} bytes; "
            f"registers hold {rules.most_bytes}; cut into more blocks"
        )
    return CopyTiles(tiles, rules.level, type_.split, ranks)


def _tile_for(dim: str, extent: int, factor: int) -> int:
    """Return the tile of a given factor, which must be a power of two."""
    if not _fits(extent, factor):
        raise PassFailedException(
            f"bsp-to-dataflow: blocks {dim}={factor} does not cut {dim}, of extent "
            f"{extent}, into {factor} tiles of a power of two; choose "
            f"{dim}={_nearest(extent, factor)}"
        )
    return ceil_div(extent, factor)


def _fits(extent: int, factor: int) -> bool:
    """Whether a factor is 1, or cuts an extent into so many tiles of a power of two."""
    tile = ceil_div(extent, factor)
    even = is_power_of_two(tile) and ceil_div(extent, tile) == factor
    return factor == 1 or even


def _nearest(extent: int, factor: int) -> int:
    """Return the fitting factor that is nearest to `factor`, of two the larger one."""
    tiles = [1 << power for power in range(extent.bit_length() + 1)]
    fitting = [f for tile in tiles if _fits(extent, f := ceil_div(extent, tile))]
    return min(fitting, key=lambda candidate: (abs(candidate - factor), -candidate))


def _producer_tiles(node: SpatialOp | None, type_: ChannelType) -> dict[str, int]:
    """Return the tiles in which the programs of `node` compute a message."""
    assert node is not None
    tiles: dict[str, int] = {}
    loops = [loop.dim for loop in node.loops]
    for dim, extent in extents_of(type_.message).items():
        if dim in loops and (loops.count(dim) == 1 or dim == type_.split):
            tiles[dim] = min(tile_of(node, dim), extent)
        elif dim not in loops:
            tiles[dim] = extent
    return tiles


def _blocks(
    type_: ChannelType, awaited: Mapping[str, int], tiles: Mapping[str, int]
) -> dict[str, int]:
    """Return into how many blocks with a flag to cut each dimension of a message."""
    blocks: dict[str, int] = {}
    for dim, extent in extents_of(type_.message).items():
        tile = tiles.get(dim, extent)
        factor = ceil_div(extent, tile)
        if dim in awaited and factor > 1 and ceil_div(extent, factor) == tile:
            blocks[dim] = factor
    return blocks


def _up_to_function(value: SSAValue) -> Iterator[SSAValue]:
    """Yield a block argument, and the operands passed to it in the ops around."""
    yield value
    while isinstance(value, BlockArgument):
        around = value.block.parent_op()
        if around is None or isinstance(around, FuncOp):
            return
        value = around.operands[value.index]
        yield value


def describe_sent(kernel: KernelOp) -> str:
    """Return the name of the value that a collective's kernel moves."""
    name = kernel.ins[0].name_hint
    return "what it sends" if name is None else f"%{name}"
