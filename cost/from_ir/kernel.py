"""
Reads the summary of a GPU kernel from its tile tree, once for all block sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.clusters import program_blocks, row_split
from comet.cost.from_ir.epilogues import divided_epilogue
from comet.cost.from_ir.exchanges import exchanges, gathered_shards, group_blocks
from comet.cost.from_ir.loop_bounds import loop_bounds, run_time_lengths
from comet.cost.from_ir.memory import (
    ids_of,
    tensor_in_memory,
    vector_width,
)
from comet.cost.from_ir.products import (
    Products,
    ReadProduct,
    sums_of_products,
    tile_bytes,
)
from comet.cost.from_ir.register_tiles import (
    RegisterTiles,
    accumulators,
    broadcast_during,
    continued,
    converted_tiles,
    kept_vectors,
)
from comet.cost.from_ir.repeated_loads import repeated_loads, repeated_waits
from comet.cost.from_ir.scatters import added_width, addresses, moved, times_stored
from comet.cost.from_ir.shares import seen_parts, shared_tiles
from comet.cost.from_ir.vector_costs import loop_cost
from comet.cost.gpu.bounded import Bound
from comet.cost.gpu.device import Device
from comet.cost.gpu.launch_order import LaunchOrder
from comet.cost.gpu.peaks import peak_groups
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import DividedEpilogue, Operands, Point, Term
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import (
    ContractOp,
    Elementwise,
    FillOp,
    MapOp,
    ReduceOp,
)
from comet.dialects.compound.dims import (
    iteration_dims,
    joined_extents,
    level_of,
    names_of,
)
from comet.dialects.compound.gather import scatterings
from comet.dialects.dataflow.transfer import PushOp, ReadTileOp, WaitOp
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.clusters import split_dims
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.liveness import alive_before
from comet.dialects.schedule.masked_loops import visible_conditions
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import Border, loads, stores
from comet.dialects.tl.math import MIN_DOT_EXTENT

Kept: TypeAlias = "Mapping[SSAValue, tuple[str, ...]]"
"""Vectors that loops keep in the layout of a product, each with these loops."""

NOTHING_KEPT: Kept = {}

DEFAULT_LAUNCH = LaunchAttr()

MOVES = (PushOp, ReadTileOp, WaitOp)
"""Ops that only move data between programs or ranks."""


class _Walk:
    """Collects the terms of a summary from a tile tree."""

    def __init__(
        self,
        levels: GpuLevels,
        gpu: Device,
        shared_out: frozenset[str],
        tensors: Sequence[SSAValue],
        *,
        with_products: bool,
        divided: Mapping[Operation, DividedEpilogue],
    ):
        self.levels = levels
        self.divided = divided
        """The ops of an epilogue that subtiles can divide."""
        self.with_products = with_products
        self.tiles = RegisterTiles(with_products=with_products)
        self.shared_out = shared_out
        """Dimensions of groups of programs, whose loops count as programs."""
        self.gpu = gpu
        self.positions = {
            tensor_in_memory(tensor): index for index, tensor in enumerate(tensors)
        }
        self.loads: list[Term] = []
        self.ids: list[Term] = []
        self.stores: list[Term] = []
        self.converted: list[Term] = []
        self.products = Products()
        self.vectors: list[Term] = []
        self.rounds: list[tuple[str, ...]] = []
        self.joined: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.repeated: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.points: list[Point] = []
        self.shared: list[tuple[Term, ...]] = []
        self.narrow: list[tuple[Term, ...]] = []
        self.held: dict[SSAValue, Term | None] = {}
        self.inner_dims: set[str] = set()
        self.times: dict[SSAValue, int] = {}
        """How often the bytes of tiles move that are scattered."""
        self.added: list[Term] = []
        self.conditions: set[SSAValue] = set()
        """The conditions of masks, in loops that can be written in two parts."""

    def node(
        self,
        op: NodeOp,
        loops: tuple[str, ...],
        outer: Sequence[SSAValue],
        loaded: tuple[SSAValue, ...] = (),
        kept: Kept = NOTHING_KEPT,
    ) -> tuple[Term, ...]:
        """
        Visit a node.

        `outer` are the values alive in registers around it, `loaded` those in shared
        memory; `kept` are the vectors that loops around it keep. Returns the tiles that
        it loads to shared memory: if its loop has one trip, the loop around it loads
        them.
        """
        inside = loops
        if isinstance(op, TemporalOp) and not self.shared_out & op.factors.keys():
            inside = (*loops, *op.factors)
            self.conditions |= set(visible_conditions(op))
            self.inner_dims |= set(op.factors) if loops else set()
        loaded_here, late = tuple(loads(op)), late_loads(op)
        repeated = repeated_loads(op)
        self.loads += [
            self._loaded(load, inside, late=load.tile in late)._replace(
                repeated=repeated.get(load.tile, ())
            )
            for load in loaded_here
        ]
        self.repeated += repeated_waits(loaded_here, inside, late, repeated)
        self.ids += self._ids(loaded_here, inside)
        # A program waits once for its early loads, and once for its late loads.
        waits = len({load.tile in late for load in loaded_here})
        self.rounds += [inside] * waits
        self.joined += [(inside, inner) for inner in joined_waits(op, waits)]
        most = self.gpu.load_bytes
        small = (
            addresses(load.tile, vector_width(load.outer, most), inside, self.gpu)
            for load in loaded_here
        )
        self.narrow.append(tuple(term for term in small if term is not None))
        own = tuple(filter(self._is_staged, op.tiles))
        loaded = (*loaded, *own)
        self.stores += [self._stored(store.tile, inside) for store in stores(op)]
        stored = self.gpu.compiled.stores_converted
        converted = converted_tiles(op, self.levels.registers, stored=stored)
        self.converted += [tile_bytes(tile, inside) for tile in converted]
        nested = self.body(op, inside, outer, loaded, late, self._kept(op, kept))
        filled = tuple(tile_bytes(tile, inside) for tile in loaded)
        self.shared.append(filled)
        if isinstance(op, TemporalOp) and nested:
            self.shared.append((*filled, *nested))
        here = (*(tile_bytes(tile, inside) for tile in own), *nested)
        return tuple(term._replace(inner=(*op.factors, *term.inner)) for term in here)

    def _loaded(self, load: Border, loops: tuple[str, ...], *, late: bool) -> Term:
        """Return the bytes that loads of a tile move, and the tensor it is part of."""
        position = self.positions.get(tensor_in_memory(load.outer))
        return tile_bytes(load.tile, loops)._replace(late=late, tensor=position)

    def _stored(self, tile: SSAValue, loops: tuple[str, ...]) -> Term:
        """Return the bytes that stores of a tile move; an addition reads sums, too."""
        term = tile_bytes(tile, loops)
        return term._replace(weight=self.times.get(tile, 1) * term.weight)

    def scatter(self, node: SpatialOp) -> None:
        """Let programs load the ids of the rows that they add to, and address them."""
        self.times.update(times_stored(node))
        ops = [op for value in node.outs for op in scatterings(value)]
        ids = {op.ids for op in ops}
        self.ids += map(tile_bytes, ids)
        self.rounds += [() for _ in ids]
        for op in ops:
            width = added_width(op, self.gpu.load_bytes)
            registers = addresses(op.values, width, (), self.gpu)
            self.narrow.append(() if registers is None else (registers,))
            if self.with_products:
                self.added.append(tile_bytes(op.values))

    def _ids(self, loaded: Sequence[Border], loops: tuple[str, ...]) -> Iterator[Term]:
        """Yield the ids of the rows that a node gathers, and count a wait for each."""
        for dims, size in dict.fromkeys(ids_of(load.outer) for load in loaded):
            if dims:
                yield Term(dims, size, loops)
                self.rounds.append(tuple(dim for dim in loops if dim in dims))

    def body(
        self,
        op: NodeOp,
        loops: tuple[str, ...],
        outer: Sequence[SSAValue],
        loaded: tuple[SSAValue, ...],
        late: Mapping[SSAValue, Operation],
        kept: Kept,
    ) -> tuple[Term, ...]:
        """
        Visit the ops of a node, and record the values that are alive at each.

        Returns the tiles that the nodes in it load to shared memory.
        """
        nested: list[Term] = []
        block = op.body.block
        tiles = (arg for arg in block.args if isinstance(arg.type, TensorType))
        entering = (*outer, *tiles, *accumulators(op))
        for inner, alive in alive_before(block, entering, late):
            tiles = self._in_registers(self.tiles.during(inner, alive))
            vectors = self._vectors(inner, kept)
            operands: Operands | None = None
            if isinstance(inner, ContractOp):
                operands = self._product(inner, loops)
                self.points.append(self._before(op, inner, alive, kept, operands))
            epilogue = self.divided.get(inner)
            self.points.append(Point(tiles, vectors, operands, epilogue=epilogue))
            if isinstance(inner, NodeOp):
                passed = {*inner.operands, *continued(op, inner)}
                around = [value for value in alive if value not in passed]
                nested += self.node(inner, loops, around, loaded, kept)
            elif operands is None:
                self._count(inner, loops)
        return tuple(nested)

    def _kept(self, op: NodeOp, kept: Kept) -> Kept:
        """
        Return the vectors that a node and the loops around it keep.

        Each comes with these loops: it is kept if one of them has several iterations.
        Without loops it is always kept: programs of a group have several tiles.
        """
        if not isinstance(op, TemporalOp) or not self.with_products:
            return kept
        always = bool(self.shared_out & op.factors.keys())
        found = dict(kept)
        for value in kept_vectors(op):
            around = found.get(value)
            if always or around == ():
                found[value] = ()
            else:
                found[value] = (*(around or ()), *op.factors)
        return found

    def _vectors(self, op: Operation, kept: Kept) -> tuple[Term, ...]:
        """Return the vectors in the layout of a product during an op."""
        vectors = tuple(broadcast_during(op))
        others = [value for value in kept if value not in vectors]
        held = (tile_bytes(value, kept[value]) for value in others)
        return (*self._in_registers(vectors), *held)

    def _before(
        self,
        op: NodeOp,
        product: Operation,
        alive: Sequence[SSAValue],
        kept: Kept,
        operands: Operands,
    ) -> Point:
        """Return the values in registers just before a contraction in a node."""
        held = self.tiles.before(product, alive)
        sums = set(accumulators(op))
        other = self._in_registers(value for value in held if value not in sums)
        summed = self._in_registers(value for value in held if value in sums)
        vectors = self._vectors(product, kept)
        return Point(other, vectors, operands, before=True, accumulator=summed)

    def _is_staged(self, tile: SSAValue) -> bool:
        """Return whether the software pipeline loads a tile to shared memory."""
        if level_of(tile) == self.levels.shared:
            return True
        in_registers = level_of(tile) == self.levels.registers
        converted = self.gpu.compiled.stages_converted
        return converted and in_registers and _feeds_product(tile)

    def _in_registers(self, tiles: Iterable[SSAValue]) -> tuple[Term, ...]:
        held = [self._held(tile) for tile in tiles]
        return tuple([term for term in held if term is not None])

    def _held(self, tile: SSAValue) -> Term | None:
        """Return the bytes of a tile in registers, None if it is not there."""
        try:
            return self.held[tile]
        except KeyError:
            here = level_of(tile) == self.levels.registers
            self.held[tile] = term = tile_bytes(tile) if here else None
            return term

    def _product(self, op: ContractOp, loops: tuple[str, ...]) -> Operands:
        """Add the operations of a contraction; return its operands."""
        read = ReadProduct.of(op)
        self.products.add(read, loops)
        self.vectors += sums_of_products(op, loops)
        return read.operands.inside(loops)

    def _count(self, op: Operation, loops: tuple[str, ...]) -> None:
        """Add the operations of an op that is neither a node nor a contraction."""
        if not op.results or isinstance(op, (FillOp, CollectiveOp, *MOVES)):
            return
        mask = loops[-1] if loops and _is_mask(op, self.conditions) else ""
        cost = additions_of(op, self.gpu)
        in_loop = loop_cost(op, cost, self.gpu)
        dims = iteration_dims(op)
        self.vectors.append(Term(dims, cost, loops, mask=mask, in_loop=in_loop))


def joined_waits(op: NodeOp, waits: int) -> Iterator[tuple[str, ...]]:
    """
    Yield, for each wait of a node that a pipeline has with another, the loops inside.

    These have one iteration then: the loop around them loads, too.
    """
    yield from [()] * (waits - 1)
    inner: tuple[str, ...] = ()
    loop: Operation | None = op if waits else None
    while isinstance(loop, TemporalOp):
        inner = (*loop.factors, *inner)
        loop = loop.parent_op()
        if isinstance(loop, TemporalOp) and any(loads(loop)):
            yield inner
            return


def additions_of(op: Operation, gpu: Device) -> float:
    """Return the cost of an op per element, in additions; not for products."""
    name = str(op.kind.data) if isinstance(op, MapOp) else "reduce"
    has_cost = isinstance(op, MapOp | ReduceOp)
    return gpu.function_costs.get(name, 1) if has_cost else 1


def _is_mask(op: Operation, conditions: Collection[SSAValue]) -> bool:
    """Whether an op computes the condition of a mask, or selects by it."""
    return op.results[0] in conditions or (
        isinstance(op, MapOp) and op.inputs[0] in conditions
    )


def _feeds_product(value: SSAValue) -> bool:
    """Whether a contraction reads a value, directly or through elementwise ops."""
    users = [use.operation for use in value.uses]
    return any(
        isinstance(user, ContractOp)
        or (
            isinstance(user, Elementwise)
            and names_of(user.result) == names_of(value)
            and _feeds_product(user.result)
        )
        for user in users
    )


def _spilled(nodes: Sequence[NodeOp], levels: GpuLevels) -> Iterator[SSAValue]:
    """Yield the tiles that a loop stores to device memory for another loop."""
    for op in nodes:
        if not isinstance(op, TemporalOp):
            continue
        for result in op.outs:
            read = any(isinstance(use.operation, NodeOp) for use in result.uses)
            if level_of(result) == levels.memory and read:
                yield result


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
    all_nodes = [op for op in node.walk() if isinstance(op, NodeOp)]
    group = group_blocks(all_nodes)
    shared_out = frozenset((*node.factors, *group) if group else ())
    with_products = any(isinstance(op, ContractOp) for op in node.walk())
    tensors = tuple(dict.fromkeys((*node.ins, *node.outs)))
    divided = divided_epilogue(node, gpu)
    walk = _Walk(
        levels, gpu, shared_out, tensors, with_products=with_products, divided=divided
    )
    walk.scatter(node)
    walk.node(node, (), ())
    nodes = [op for op in all_nodes if isinstance(op, TemporalOp)]
    nodes = [op for op in nodes if not shared_out & op.factors.keys()]
    extents = _extents(node, nodes)
    bounds = loop_bounds(nodes, extents)
    return KernelSummary(
        extents=extents,
        grid=(*node.factors, *group),
        loops=tuple(dict.fromkeys(dim for op in nodes for dim in op.factors)),
        dot_dims=frozenset(walk.products.dims),
        dot_rows=frozenset(walk.products.rows),
        dot_depths=frozenset(walk.products.depths),
        inner_dims=frozenset(walk.inner_dims),
        batch_dims=frozenset(walk.products.batch),
        tensors=tuple(map(moved, tensors)),
        spilled=tuple(map(tile_bytes, _spilled(all_nodes, levels))),
        loads=tuple(walk.loads),
        ids=tuple(walk.ids),
        stores=tuple(walk.stores),
        converted=tuple(walk.converted),
        dots=tuple(walk.products.dots),
        dot_results=tuple(walk.products.results),
        dot_reads=tuple(walk.products.reads),
        products=tuple(walk.products.products),
        vectors=tuple(walk.vectors),
        rounds=tuple(walk.rounds),
        joined_rounds=tuple(walk.joined),
        repeated_rounds=tuple(walk.repeated),
        points=tuple(dict.fromkeys(walk.points)),
        shared=peak_groups(walk.shared),
        sums=tuple(walk.products.sums),
        added=tuple(walk.added),
        narrow=peak_groups(walk.narrow),
        dot_type=walk.products.type,
        group=group,
        shards=gathered_shards(node),
        exchanges=exchanges(all_nodes, among_ranks=False),
        rank_exchanges=exchanges(all_nodes, among_ranks=True),
        bounds=bounds,
        seen=dict.fromkeys(run_time_lengths(nodes), gpu.mean_length) | seen_parts(node),
        shares=shared_tiles(node),
        least_dot=MIN_DOT_EXTENT,
        multiprocessors=gpu.multiprocessors,
        order=launch_order(node, bounds.values()),
        unmasked=_unmasked(nodes),
        epilogue=next(iter(divided.values()), None),
        split=row_split(node, gpu),
    )


def _extents(node: SpatialOp, loops: Sequence[TemporalOp]) -> Mapping[str, int]:
    """Return the extents of what a kernel loads and stores, and its loops read."""
    extents: dict[str, int] = {}
    for loop in reversed(loops):
        extents |= joined_extents(loop.ins)
    return extents | joined_extents((*node.ins, *node.outs))


def _unmasked(nodes: Sequence[TemporalOp]) -> frozenset[str]:
    """Return the dimensions of loops that are written in two parts."""
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
