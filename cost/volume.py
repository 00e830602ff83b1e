"""
How much data moves, and how often: tile extents, reuse, and the time of one transfer.

Sources: sections "data movement" of arXiv 2509.00599 and the COMET tool's behaviour. Formulas take Python numbers; the ones
that say so take numpy arrays as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from comet.cost.hardware import Hardware, Memory, Network
from comet.cost.noc import network_cycles
from comet.cost.problem import CollectiveKind, Entry, Projection, Sizes


def elements(projection: Projection, extents: Sizes) -> int:
    """The elements of a tile with the given extents; dimensions that share an axis add up. Extents may be arrays."""
    return math.prod(sum(extents.get(dim, 0) for dim in axis) for axis in projection)


def relevant(projection: Projection) -> frozenset[str]:
    """The dimensions a tensor depends on."""
    return frozenset(dim for axis in projection for dim in axis)


def reuse_period(order: tuple[str, ...], factors: Sizes, dims: frozenset[str]) -> int:
    """
    After how many iterations of a temporal nest (innermost loop first) the tile changes.

    The product of the loops inside the innermost loop that is relevant and turns; the whole nest where none is.
    """
    period = 1
    for dim in order:
        if dim in dims and factors[dim] > 1:
            return period
        period *= factors[dim]
    return period


@dataclass(frozen=True, slots=True)
class Movement:
    """How one entry of a node moves, iteration by iteration."""

    entry: Entry
    writes: bool
    dependent: bool
    iterations: int
    """Iterations of the nest the entry is charged for."""
    steps: int
    """Steps of the leaf below per iteration."""
    spatial: int
    """Instances the entry is spread over."""
    size: int
    """Elements of the tile of one child."""
    length: int
    """Iterations for which movement is known."""
    period: int
    """A tile moves in every `period`-th iteration."""
    unique: int
    """Distinct tiles that move at once, one where all instances share it."""

    @property
    def moves(self) -> int:
        """How often a tile really moves."""
        return math.ceil(self.length / self.period)

    @property
    def reuse(self) -> int:
        """Iterations per move, at least 1."""
        return max(1, self.iterations // self.moves)


@dataclass(frozen=True, slots=True)
class Route:
    """What a transfer runs over: the memory near the root, the network, and the child's side."""

    source: Memory
    network: Network
    child_read: int
    """Bytes per cycle out of the child, towards the root."""
    child_write: int

    @classmethod
    def of(cls, hardware: Hardware, source: str, destination: str) -> Route:
        """The route between two joined levels; raises `CostError` where no link joins them."""
        network = hardware.network(source, destination)
        child = hardware.level(destination)
        memory = hardware.level(source).memory
        if child.is_unit:
            return cls(memory, network, network.bandwidth, network.bandwidth)
        return cls(memory, network, child.memory.parent_read_bandwidth, child.memory.parent_write_bandwidth)


def memory_cycles(
    route: Route,
    movement: Movement,
    unique: int,
    *,
    real: Callable[[Any], Any] = float,
) -> float:
    """
    Cycles of the two memories at the ends of one transfer of `unique` tiles, the slower of both.

    The source serves min(ports, unique) ports, each no faster than the network; every child takes one tile. Without network
    support a tile goes out once per instance. A drained tile that accumulates is read first. Source: T_mem = DV / BW of
    arXiv 2509.00599 with the COMET tool's bandwidths and its single precision where `real` is `numpy.float32`.
    """
    source, network = route.source, route.network
    ports = max(1, min(unique, source.ports))
    tiles = max(unique, 1) if movement.writes else unique
    whole = source.child_write_bandwidth if movement.writes else source.child_read_bandwidth
    bandwidth = min(_ported(whole, ports, source.ports), ports * network.bandwidth)
    supported = network.reduction if movement.writes else network.broadcast
    copies = 1 if supported or tiles == 0 else -(-movement.spatial // tiles)
    element_bytes = real(movement.entry.bits) / real(8)
    data = real(copies) * real(tiles) * real(movement.size) * element_bytes
    out = np.ceil(data / real(bandwidth))
    if movement.writes and movement.entry.accumulates:
        out += np.ceil(data / real(_ported(source.child_read_bandwidth, ports, source.ports)))
    child = route.child_read if movement.writes else route.child_write
    into = 0.0 if tiles == 0 else np.ceil(real(movement.size) * element_bytes / real(min(child, network.bandwidth)))
    return float(max(out, into))


def _ported(bandwidth: int, used: int, ports: int) -> int:
    return bandwidth // ports * used if used < ports else bandwidth


def transfer_kind(writes: bool, unique: int) -> CollectiveKind:
    """The collective that an implicit transfer amounts to on the network."""
    if writes:
        return CollectiveKind.GATHER
    return CollectiveKind.BROADCAST if unique == 1 else CollectiveKind.SCATTER


def transfer_network_cycles(
    route: Route, movement: Movement, unique: int, hops: int, *, real: Callable[[Any], Any] = float
) -> float:
    """Cycles the network adds to one transfer; none where nothing moves or one instance is used."""
    if unique == 0 or movement.spatial == 1:
        return 0
    kind = transfer_kind(movement.writes, unique)
    element_bytes = movement.entry.bits / 8
    return float(network_cycles(kind, route.network, hops, movement.size, movement.spatial, element_bytes, real=real))
