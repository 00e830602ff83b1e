"""
Copy kernels: a node on the launch grid that copies its tiles.

How it cuts a value is the granularity of communication, which is independent of the
tiles of other kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from xdsl.ir import Block, Region, SSAValue

from comet.cost.gpu.registers import REGISTER
from comet.dialects.arch import SystemOp
from comet.dialects.arch.fields import integer
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.arch.schema import GPU_DEFAULTS
from comet.dialects.compound.dims import ceil_div, extents_of, with_extents, with_level
from comet.dialects.schedule import SpatialOp, YieldOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.launch import LaunchAttr

WARPS = 4
"""The warps of a program that only copies."""


@dataclass(frozen=True)
class CopyRules:
    """Limits of a machine for copy kernels; `dialects.arch.schema` has the sources."""

    level: str
    """The memory through which they copy."""
    min_elements: int
    max_elements: int
    """The elements that one program moves, if it can choose."""
    programs: int
    """With fewer programs than this, tiles are made smaller."""
    flag_rows: int
    """The most rows of a block with one flag."""
    most_bytes: int
    """The bytes of a tile that the registers of a program hold."""


def copy_rules(system: SystemOp) -> CopyRules:
    """Return the limits of a machine with GPUs; defaults for missing fields."""
    figures = GPU_DEFAULTS if system.gpu is None else system.gpu.figures
    count = partial(integer, figures)
    taken = count("thread_registers") + count("spare_registers")
    registers = (count("most_registers") - taken) * WARPS * count("warp_threads")
    return CopyRules(
        level=gpu_levels(system).registers,
        min_elements=count("least_copy_elements"),
        max_elements=count("most_copy_elements"),
        programs=count("copy_programs"),
        flag_rows=count("flag_rows"),
        most_bytes=registers * REGISTER,
    )


@dataclass(frozen=True)
class CopyTiles:
    """How a copy kernel cuts a value into tiles."""

    tiles: Mapping[str, int]
    """The extent of a tile along each dimension."""
    level: str
    """The memory in which a program has its tile."""
    split: str | None = None
    """The dimension whose shards are for different ranks."""
    ranks: int = 1


def even_power(extent: int, limit: int) -> int:
    """
    Return the largest power of two, up to `limit`, that cuts `extent` evenly.

    That is, ceil(extent / ceil(extent / tile)) is the tile again. The extent itself
    fits if it is not larger than `limit`.
    """
    tile = _power_within(extent, limit)
    while ceil_div(extent, ceil_div(extent, tile)) != tile:
        tile //= 2
    return tile


def communication_tiles(
    extents: Mapping[str, int], awaited: Mapping[str, int], rules: CopyRules
) -> dict[str, int]:
    """
    Choose the tiles of a copy kernel for a message of these extents.

    `awaited` has the tiles of consumers along the dimensions whose blocks they wait
    for. A block is no smaller than such a tile, if a program moves enough elements.
    With the remaining elements, tiles grow along the other dimensions, the innermost
    first, and then along the awaited ones.
    """
    shared = prod(extents.values()) // rules.programs
    work = max(rules.min_elements, min(rules.max_elements, shared))
    tiles: dict[str, int] = {}
    for dim, read in awaited.items():
        tiles[dim] = even_power(extents[dim], min(read, rules.flag_rows))
    for dim in reversed(tuple(extents)):
        remaining = max(1, work // prod(tiles.values()))
        if dim not in tiles:
            tiles[dim] = _power_within(extents[dim], remaining)
    for dim in reversed(tuple(awaited)):
        remaining = max(1, work // prod(tiles.values()))
        tiles[dim] = even_power(extents[dim], tiles[dim] * remaining)
    return {dim: tiles[dim] for dim in extents}


def _power_within(extent: int, limit: int) -> int:
    """Return the extent if it is not larger than `limit`, else a power of two."""
    return extent if extent <= limit else 1 << (limit.bit_length() - 1)


def copy_node(value: SSAValue, copy: CopyTiles) -> SpatialOp:
    """Return a node on the grid that copies `value` tile by tile."""
    extents = extents_of(value)
    factors: list[tuple[str, int]] = []
    for dim, extent in extents.items():
        if dim == copy.split:
            factors.append((dim, copy.ranks))
            extent = ceil_div(extent, copy.ranks)
        if (count := ceil_div(extent, copy.tiles[dim])) > 1 or dim == copy.split:
            factors.append((dim, count))
    loops = [LoopAttr(dim, n, f"g{index}") for index, (dim, n) in enumerate(factors)]
    tile = with_level(with_extents(value.type, copy.tiles), copy.level)
    body = Block(arg_types=[tile])
    body.add_op(YieldOp(body.args[0]))
    body.args[0].name_hint = value.name_hint
    node = SpatialOp(
        None,
        loops,
        [value],
        [value.type],
        [Combiner.NONE],
        Region(body),
        launch=LaunchAttr(warps=WARPS, stages=1, group=1),
    )
    node.outs[0].name_hint = value.name_hint
    return node
