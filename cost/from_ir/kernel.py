"""
Reads the summary of a GPU kernel from its tile tree, once for all block sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.bodies import Body, read_bodies
from comet.cost.from_ir.clusters import program_blocks, row_split
from comet.cost.from_ir.epilogues import divided_epilogue
from comet.cost.from_ir.exchanges import (
    exchanges,
    gathered_shards,
    group_blocks,
    group_sizes,
)
from comet.cost.from_ir.loop_bounds import loop_bounds, run_time_lengths
from comet.cost.from_ir.products import ReadProduct, tile_bytes
from comet.cost.from_ir.register_points import (
    RegisterPoints,
    accessed_tiles,
    narrow_loads,
)
from comet.cost.from_ir.scatters import addition_addresses, additions, moved
from comet.cost.from_ir.shares import seen_parts, shared_tiles
from comet.cost.from_ir.staged_tiles import staged_groups
from comet.cost.from_ir.tile_traffic import (
    converted,
    gathered_ids,
    loaded_tiles,
    spilled_tiles,
    stored_tiles,
)
from comet.cost.from_ir.vector_operations import vector_operations
from comet.cost.from_ir.waits import waits_for_loads
from comet.cost.gpu.bounded import Bound
from comet.cost.gpu.contractions import Contractions
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel_facts import (
    LiveTiles,
    Moves,
    Nest,
    Synchronization,
    VectorWork,
)
from comet.cost.gpu.launch_order import LaunchOrder
from comet.cost.gpu.peaks import peak_groups
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Wait
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import joined_extents
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.clusters import split_dims
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.math import MIN_DOT_EXTENT

DEFAULT_LAUNCH = LaunchAttr()

_Products: TypeAlias = "Mapping[Operation, tuple[ReadProduct, Body]]"
"""The contractions of a kernel, each with its body."""


def launch_numbers(launch: LaunchAttr) -> LaunchNumbers:
    """Return the launch numbers that registers depend on."""
    subtiles = max(launch.subtiles, 1)
    return LaunchNumbers(
        launch.warps, launch.stages, launch.specialize, subtiles, launch.cluster
    )


def tile_blocks(node: SpatialOp) -> dict[str, int]:
    """
    Return the block size of each dimension, for its largest tile.

    Of a program that is a cluster, it is that of one thread block.
    """
    blocks = program_blocks(node)
    if node.launch is not None and node.launch.cluster > 1:
        _, column = split_dims(node)
        blocks[column] //= node.launch.cluster
    return blocks


def summarize(node: SpatialOp, levels: GpuLevels, gpu: Device) -> KernelSummary:
    """Return the summary of the kernel under a grid node, for any factors."""
    nodes = [op for op in node.walk() if isinstance(op, NodeOp)]
    group = group_blocks(nodes)
    tree = read_bodies(node, frozenset((*node.factors, *group) if group else ()))
    bodies = tuple(tree.walk())
    products = _products(tree)
    arrived_ids = (Wait(()) for _ in _added_ids(node))
    return KernelSummary(
        products=Contractions(
            tuple(
                read.inside(body.loops, body.coalesced)
                for read, body in products.values()
            ),
            MIN_DOT_EXTENT,
        ),
        nest=_nest(node, bodies, nodes, gpu),
        live=_live_tiles(node, tree, products, levels, gpu),
        moves=_moves(node, bodies, levels),
        vector=VectorWork(
            operations=tuple(vector_operations(tree, gpu.units)),
            converted=tuple(converted(bodies, levels, gpu.triton.stores)),
        ),
        sync=Synchronization(
            waits=(*arrived_ids, *waits_for_loads(bodies)),
            exchanges=exchanges(nodes, among_ranks=False),
            rank_exchanges=exchanges(nodes, among_ranks=True),
        ),
    )


def _nest(
    node: SpatialOp, bodies: Sequence[Body], nodes: Sequence[NodeOp], gpu: Device
) -> Nest:
    """Return the grid and the loops of a kernel, and the order of its programs."""
    loops = [body.loop for body in bodies if body.loop is not None]
    extents = _extents(node, loops)
    bounds, group = loop_bounds(loops, extents), group_blocks(nodes)
    return Nest(
        extents=extents,
        grid=(*node.factors, *group),
        loops=tuple(dict.fromkeys(dim for op in loops for dim in op.factors)),
        inner_dims=_inner_dims(bodies),
        group=group,
        ctas=group_sizes(nodes),
        bounds=bounds,
        seen=dict.fromkeys(run_time_lengths(loops), gpu.mean_length) | seen_parts(node),
        unmasked=_unmasked(loops),
        shards=gathered_shards(node),
        split=row_split(node, gpu),
        multiprocessors=gpu.multiprocessors,
        order=launch_order(node, bounds.values()),
        shares=shared_tiles(node),
    )


def _live_tiles(
    node: SpatialOp, tree: Body, products: _Products, levels: GpuLevels, gpu: Device
) -> LiveTiles:
    """Return the live tiles of registers and shared memory."""
    bodies = tuple(tree.walk())
    with_products = any(isinstance(op, ContractOp) for op in node.walk())
    divided = divided_epilogue(node, gpu)
    points = RegisterPoints(
        levels.registers,
        {
            op: read.operands.inside(body.loops, body.coalesced)
            for op, (read, body) in products.items()
        },
        divided,
        with_products=with_products,
        whole=gpu.triton.tiles.whole_tiles and not with_products,
        rounded=gpu.triton.tiles.rounded_fraction,
    )
    added = [tile_bytes(op.values) for op in additions(node)]
    narrow = (*addition_addresses(node, gpu), *narrow_loads(bodies, gpu))
    return LiveTiles(
        points=tuple(dict.fromkeys(points.of(tree))),
        epilogue=next(iter(divided.values()), None),
        shared=peak_groups(staged_groups(tree, levels, gpu.triton.copies)),
        added=tuple(added) if with_products else (),
        narrow=peak_groups(narrow),
        accessed=() if with_products else peak_groups(accessed_tiles(bodies)),
    )


def _moves(node: SpatialOp, bodies: Sequence[Body], levels: GpuLevels) -> Moves:
    """Return the memory traffic of the programs of a kernel."""
    tensors = tuple(dict.fromkeys((*node.ins, *node.outs)))
    gathered = (ids for body in bodies for ids in gathered_ids(body))
    return Moves(
        tensors=tuple(map(moved, tensors)),
        spilled=tuple(spilled_tiles(bodies, levels)),
        loads=tuple(loaded_tiles(bodies, tensors)),
        stores=tuple(stored_tiles(node, bodies)),
        ids=(*map(tile_bytes, _added_ids(node)), *gathered),
    )


def _added_ids(node: SpatialOp) -> tuple[SSAValue, ...]:
    """Return the ids of the rows to which a kernel adds, each once."""
    return tuple(dict.fromkeys(op.ids for op in additions(node)))


def _products(tree: Body) -> _Products:
    """Return the contractions of a kernel, each with its body."""
    ops = ((op, body) for op, body in tree.ops() if isinstance(op, ContractOp))
    return {op: (ReadProduct.of(op), body) for op, body in ops}


def _inner_dims(bodies: Iterable[Body]) -> frozenset[str]:
    """Return the dimensions of loops that are inside other loops."""
    loops = ((body.loop, body) for body in bodies if body.loop is not None)
    return frozenset(
        dim
        for loop, body in loops
        if len(body.loops) > max(body.coalesced, len(loop.factors))
        for dim in loop.factors
    )


def _extents(node: SpatialOp, loops: Sequence[TemporalOp]) -> Mapping[str, int]:
    """Return the extents of what a kernel loads and stores, and its loops read."""
    extents: dict[str, int] = {}
    for loop in reversed(loops):
        extents |= joined_extents(loop.ins)
    return extents | joined_extents((*node.ins, *node.outs))


def _unmasked(nodes: Sequence[TemporalOp]) -> frozenset[str]:
    """Return the dimensions of loops that are written as two."""
    return frozenset(d for op in nodes if op.unmask is not None for d in op.factors)


def launch_order(node: SpatialOp, bounds: Iterable[Bound]) -> LaunchOrder:
    """
    Return the order in which the programs of a grid node start.

    Before `order-programs`, prices assume that the longest start first.
    """
    launch = node.launch or DEFAULT_LAUNCH
    if node.reversed_ is not None:
        return LaunchOrder(node.reversed_dims, launch.group, launch.persistent)
    grown = frozenset(bound.rows for bound in bounds if not bound.since)
    return LaunchOrder(grown & node.factors.keys(), persistent=launch.persistent)
