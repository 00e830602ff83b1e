"""
The COMET architecture schema (ComputeTiles, MemoryTypes, Hierarchy), read into
`Hardware`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from comet.cost.accelerator.capacity import ROOT_MEMORY
from comet.cost.accelerator.hardware import Hardware, Level, Memory, Network, Unit
from comet.cost.estimate import HardwareError
from comet.cost.fields import Fields, Yaml, as_fields


def read_hardware(document: Mapping[str, Yaml]) -> Hardware:
    """
    The machine a parsed architecture file describes.

    Levels come in the COMET tool's exploration order: a level, its connects, drains,
    then fills. Raises `HardwareError` for a missing or contradictory field.
    """
    arch = Fields(document, "the architecture file")
    kinds: dict[str, Memory | Unit] = {}
    for item in arch.items("ComputeTiles"):
        unit = _unit(as_fields(item, "a compute tile"))
        kinds[unit.kind] = unit
    for item in arch.items("MemoryTypes"):
        memory = _memory(as_fields(item, "a memory type"))
        kinds[memory.kind] = memory
    reader = _Hierarchy(kinds)
    for item in arch.items("Hierarchy"):
        reader.visit(as_fields(item, "the root of the hierarchy"), None)
    if not reader.levels:
        raise HardwareError(
            "the architecture file has an empty Hierarchy; list its root memory there"
        )
    return Hardware(tuple(reader.levels), reader.networks)


def _unit(item: Fields) -> Unit:
    name = item.text("name")
    a = item.below("attributes", f"compute tile {name}")
    if a.integer("computeOpC") == 0 or a.integer("computeLatency") == 0:
        raise HardwareError(
            f"compute tile {name} needs computeOpC and computeLatency above zero"
        )
    return Unit(
        kind=name,
        latency=a.integer("computeLatency"),
        startup=a.integer("startupLatency", 0),
        width=a.integer("computeWidth", 8),
        rows=a.integer("array_rows", 32),
        columns=a.integer("array_cols", 32),
        row_arrays=a.integer("num_sa_rows", 1),
        column_arrays=a.integer("num_sa_cols", 1),
        energy=a.number("compute_energy", 0.0),
    )


def _memory(item: Fields) -> Memory:
    name = item.text("name")
    a = item.below("attributes", f"memory type {name}")
    return Memory(
        kind=name,
        width=a.integer("width", 1),
        depth=a.integer("depth", 1),
        ports=a.integer("ports", 1),
        parent_read_bandwidth=_bandwidth(a, "parent_read_bw"),
        parent_write_bandwidth=_bandwidth(a, "parent_write_bw"),
        child_read_bandwidth=_bandwidth(a, "child_read_bw"),
        child_write_bandwidth=_bandwidth(a, "child_write_bw"),
        link_read_bandwidth=_bandwidth(a, "link_read_bw"),
        link_write_bandwidth=_bandwidth(a, "link_write_bw"),
        parent_read_energy=a.number("parent_read_energy", 0),
        parent_write_energy=a.number("parent_write_energy", 0),
        child_read_energy=a.number("child_read_energy", 0),
        child_write_energy=a.number("child_write_energy", 0),
        shares_ports=a.flag("parent_child_ports_shared"),
        one_bus=a.has("bw"),
        contiguous=a.flag("dma_contiguous"),
    )


def _bandwidth(a: Fields, key: str) -> int:
    """Bytes per cycle; a plain `bw` stands for all six."""
    return a.integer("bw" if a.has("bw") else key, 0)


def _network(a: Fields, name: str) -> Network:
    if not a.has("bw"):
        raise HardwareError(
            f"level {name} has no 'bw' in its attributes; give the bandwidth of its "
            "link in bytes per cycle"
        )
    if not a.has("connection_type"):
        raise HardwareError(
            f"level {name} has no 'connection_type' in its attributes; write "
            "connection_type: MeshNetwork"
        )
    return Network(
        bandwidth=a.integer("bw"),
        mesh=_mesh(a),
        hop_latency=a.integer("hop_latency", 1),
        queuing_delay=a.integer("queuing_delay", 0),
        channel_width=a.integer("channel_width", 32),
        broadcast=a.flag("broadcast_support"),
        reduction=a.flag("reduction_support"),
    )


def _mesh(a: Fields) -> tuple[int, int] | None:
    if a.has("mesh"):
        x, y = (*a.items("mesh"), 1, 1)[:2]
        if not isinstance(x, int) or not isinstance(y, int):
            raise HardwareError(
                f"{a.where}: field 'mesh' must be a list of two integers"
            )
        return x, y
    return (a.integer("meshX"), a.integer("meshY", 1)) if a.has("meshX") else None


def _check_capacity(level: Level) -> None:
    if level.is_unit or level.name == ROOT_MEMORY:
        return
    if level.memory.capacity >= 2**32:
        raise HardwareError(
            f"level {level.name} holds {level.memory.capacity} bytes, which overflows "
            "the 32 bits in which the COMET tool counts them; make its width times its "
            "depth smaller"
        )


@dataclass
class _Hierarchy:
    """Collects levels and networks while it walks the tree."""

    kinds: Mapping[str, Memory | Unit]
    levels: list[Level] = field(default_factory=list[Level])
    networks: dict[tuple[str, str], Network] = field(
        default_factory=dict[tuple[str, str], Network]
    )
    places: dict[str, int] = field(default_factory=dict[str, int])

    def visit(self, item: Fields, parent: Level | None) -> None:
        name = re.sub(r"\[.*$", "", item.text("name")).strip()
        if parent is not None:
            attributes = item.below("attributes", f"level {name}")
            self.networks[parent.name, name] = _network(attributes, name)
        if name in self.places:
            self._join(name, item, parent)
            return
        level = self._level(name, item, parent)
        _check_capacity(level)
        self.places[name] = len(self.levels)
        self.levels.append(level)
        for key in ("connects", "drains", "fills"):
            for child in item.items(key):
                self.visit(as_fields(child, f"a level below {name}"), level)

    def _level(self, name: str, item: Fields, parent: Level | None) -> Level:
        if (kind := self.kinds.get(item.text("type"))) is None:
            raise HardwareError(
                f"level {name} is of type {item.text('type')!r}, which is neither in "
                "ComputeTiles nor in MemoryTypes"
            )
        attributes = item.below("attributes", f"level {name}")
        x, y = _mesh(attributes) or (1, 1)
        above = 1 if parent is None else parent.total_instances
        link = _network(attributes, name) if attributes.flag("link_transfers") else None
        return Level(name, kind, parent and parent.name, x * y, above * x * y, link)

    def _join(self, name: str, item: Fields, parent: Level | None) -> None:
        """
        A unit may hang under several memories: the parent with the most instances
        counts (COMET tool).
        """
        known = self.levels[self.places[name]]
        if not known.is_unit or parent is None:
            raise HardwareError(
                f"memory level {name} appears twice in the hierarchy; give each memory "
                "its own name"
            )
        first = self.levels[self.places[known.parent or parent.name]]
        if parent.instances > first.instances:
            total = parent.total_instances * known.instances
            self.levels[self.places[name]] = Level(
                name, known.kind, parent.name, known.instances, total, known.link
            )
