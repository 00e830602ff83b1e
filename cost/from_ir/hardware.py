"""An `arch.system` of an accelerator as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from xdsl.ir import Attribute, Block

from comet.cost.accelerator.hardware import (
    Hardware,
    Level,
    Memory,
    Network,
    Unit,
)
from comet.cost.estimate import HardwareError
from comet.dialects.arch import ComputeOp, LevelOp, MemoryOp, Path, SystemOp, UnitOp
from comet.dialects.arch.fields import fields_of, integer, number
from comet.kinds import ROOT_MEMORY

MAX_SYSTEMS = 16
"""The most systems whose hardware is remembered."""

_cache: dict[Hashable, tuple[tuple[Attribute, ...], Hardware]] = {}
"""Hardware by what describes it, and the attributes whose identity is part of that."""


def hardware_of(system: SystemOp) -> Hardware:
    """
    Return the hardware of an `arch.system`, whose verifier has checked the fields.

    If a unit is below several memories, its parent is the one with the most instances,
    as in the COMET tool. Raises `HardwareError` if there is no level, or if a memory is
    larger than the COMET tool can count.
    """
    key = tuple(_described(system.body.block))
    if (found := _cache.get(key)) is None:
        attributes = (op.properties.values() for op in system.body.walk())
        found = (*chain.from_iterable(attributes),), _read(system)
        if len(_cache) >= MAX_SYSTEMS:
            del _cache[next(iter(_cache))]
        _cache[key] = found
    return found[1]


def _described(block: Block) -> Iterator[Hashable]:
    """
    Yield a key of the hardware, in which attributes are compared by identity.

    Clones of a module share them, and a search prices many clones.
    """
    for op in block.ops:
        yield type(op)
        for name, attribute in op.properties.items():
            yield name
            yield id(attribute)
        for region in op.regions:
            yield from _described(region.block)
        yield None


def _read(system: SystemOp) -> Hardware:
    """Return the hardware, or raise HardwareError, as `hardware_of`."""
    levels: dict[str, Level] = {}
    networks: dict[tuple[str, str], Network] = {}
    for node in _explored(system.body.block):
        name, above = node.level_name, node.parent_level
        if above is not None:
            networks[above.level_name, name] = _network(node)
        if (level := levels.get(name)) is None:
            levels[name] = _level(node)
        elif above and above.instances > levels[level.parent or ""].instances:
            total = above.total_instances * level.instances
            levels[name] = replace(
                level, parent=above.level_name, total_instances=total
            )
    if not levels:
        raise HardwareError(
            f"the hardware @{system.system_name} has no level; list its root memory in "
            "the Hierarchy"
        )
    return Hardware(tuple(levels.values()), networks)


def _explored(block: Block) -> Iterator[LevelOp | UnitOp]:
    """Yield nodes in the COMET tool's order: `connects`, `drains`, `fills`."""
    nodes = [op for op in block.ops if isinstance(op, LevelOp | UnitOp)]
    order = [None, *Path]
    for node in sorted(
        nodes, key=lambda node: order.index(node.path and node.path.data)
    ):
        yield node
        if isinstance(node, LevelOp):
            yield from _explored(node.body.block)


def _level(node: LevelOp | UnitOp) -> Level:
    kind = _unit(node.compute) if isinstance(node, UnitOp) else _memory(node.memory)
    name, above = node.level_name, node.parent_level
    if isinstance(kind, Memory) and name != ROOT_MEMORY and kind.capacity >= 2**32:
        raise HardwareError(
            f"level {name} holds {kind.capacity} bytes, which overflows the 32 bits in "
            "which the COMET tool counts them; make its width times its depth smaller"
        )
    return Level(
        name,
        kind,
        None if above is None else above.level_name,
        node.instances,
        node.total_instances,
        _network(node) if node.link_field("link_transfers") is True else None,
    )


def _unit(row: ComputeOp) -> Unit:
    fields = fields_of(row.fields)
    count = partial(integer, fields)
    return Unit(
        kind=row.kind.data,
        latency=count("computeLatency"),
        startup=count("startupLatency"),
        width=count("computeWidth", 8),
        rows=count("array_rows", 32),
        columns=count("array_cols", 32),
        row_arrays=count("num_sa_rows", 1),
        column_arrays=count("num_sa_cols", 1),
        energy=number(fields, "compute_energy"),
    )


def _memory(row: MemoryOp) -> Memory:
    """Return a memory; bandwidths are bytes per cycle, the field `bw` sets all six."""
    fields = fields_of(row.fields)
    count, energy = partial(integer, fields), partial(number, fields)

    def bandwidth(name: str) -> int:
        return count("bw" if "bw" in fields else name)

    return Memory(
        kind=row.kind.data,
        width=count("width", 1),
        depth=count("depth", 1),
        ports=count("ports", 1),
        parent_read_bandwidth=bandwidth("parent_read_bw"),
        parent_write_bandwidth=bandwidth("parent_write_bw"),
        child_read_bandwidth=bandwidth("child_read_bw"),
        child_write_bandwidth=bandwidth("child_write_bw"),
        link_read_bandwidth=bandwidth("link_read_bw"),
        link_write_bandwidth=bandwidth("link_write_bw"),
        parent_read_energy=energy("parent_read_energy"),
        parent_write_energy=energy("parent_write_energy"),
        child_read_energy=energy("child_read_energy"),
        child_write_energy=energy("child_write_energy"),
        shares_ports=fields.get("parent_child_ports_shared") is True,
        one_bus="bw" in fields,
        contiguous=fields.get("dma_contiguous") is True,
    )


def _network(node: LevelOp | UnitOp) -> Network:
    fields = {} if node.link is None else fields_of(node.link)
    count = partial(integer, fields)
    return Network(
        bandwidth=count("bw"),
        mesh=node.mesh_shape if fields.keys() & {"mesh", "meshX"} else None,
        hop_latency=count("hop_latency", 1),
        queuing_delay=count("queuing_delay"),
        channel_width=count("channel_width", 32),
        broadcast=fields.get("broadcast_support") is True,
        reduction=fields.get("reduction_support") is True,
    )
