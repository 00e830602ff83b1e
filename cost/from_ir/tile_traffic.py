"""The bytes that one program of a GPU kernel loads, stores, and converts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.memory import ids_of, tensor_in_memory
from comet.cost.from_ir.products import tile_bytes
from comet.cost.from_ir.register_tiles import converted_tiles
from comet.cost.from_ir.scatters import times_stored
from comet.cost.gpu.terms import Term
from comet.cost.gpu.triton_rules import StoreRules
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.compound.dims import level_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import stores


def loaded_tiles(bodies: Iterable[Body], tensors: Sequence[SSAValue]) -> Iterator[Term]:
    """Yield the tiles that bodies load, each with the position of its tensor, bytes."""
    positions = {tensor_in_memory(value): at for at, value in enumerate(tensors)}
    for body in bodies:
        for load in body.loads:
            yield tile_bytes(load.tile, body.loops)._replace(
                late=load.tile in body.late,
                tensor=positions.get(tensor_in_memory(load.outer)),
                repeated=body.repeated.get(load.tile, ()),
            )


def gathered_ids(body: Body) -> Iterator[Term]:
    """Yield the ids of the rows that a body gathers, bytes."""
    for dims, size in dict.fromkeys(ids_of(load.outer) for load in body.loads):
        if dims:
            yield Term(dims, size, body.loops)


def stored_tiles(grid: SpatialOp, bodies: Iterable[Body]) -> Iterator[Term]:
    """Yield the tiles that bodies store, bytes; an addition reads sums, too."""
    times = dict(times_stored(grid))
    for body in bodies:
        for store in stores(body.node):
            term = tile_bytes(store.tile, body.loops)
            yield term._replace(weight=times.get(store.tile, 1) * term.weight)


def spilled_tiles(bodies: Iterable[Body], levels: GpuLevels) -> Iterator[Term]:
    """Yield the tiles that loops store to device memory for other loops, bytes."""
    for body in bodies:
        if not isinstance(body.node, TemporalOp):
            continue
        for result in body.node.outs:
            read = any(isinstance(use.operation, NodeOp) for use in result.uses)
            if level_of(result) == levels.memory and read:
                yield tile_bytes(result)


def converted(
    bodies: Iterable[Body], levels: GpuLevels, rules: StoreRules
) -> Iterator[Term]:
    """Yield the tiles that bodies convert to another layout, bytes."""
    stored = rules.stores_converted
    for body in bodies:
        for tile in converted_tiles(body.node, levels.registers, stored=stored):
            yield tile_bytes(tile, body.loops)
