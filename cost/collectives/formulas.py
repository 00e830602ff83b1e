"""
The time and energy of collectives among the instances of one level, formulas by kind.

Memory time is that of the levels' link ports, network time that of the mesh
(`cost.accelerator.noc`). Sources: the COMET tool, and section "collectives" of arXiv
2509.00599. Tile sizes may be numpy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from comet.cost.accelerator.hardware import Level, Memory, Network, check_positive
from comet.cost.accelerator.noc import Crossing, hops_to, network_cycles
from comet.cost.estimate import CostError
from comet.cost.reals import Real
from comet.kinds import CollectiveKind


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """The tiles and the instances of one collective."""

    kind: CollectiveKind
    read_bytes: Real
    """Bytes of the tile that one instance sends."""
    written_bytes: Real
    """Bytes of the tile that one instance receives (gather: of the whole tensor)."""
    sources: int
    destinations: int
    factor: int
    """
    The instances that take part (spatial_factor). The COMET tool takes it for the
    number of sequential transfers without network support, on a mesh of all sources.
    """

    @property
    def group(self) -> CollectiveTraffic:
        """The same collective on a mesh that has only the instances that take part."""
        if self.factor == self.sources:
            return self
        others = self.destinations if self.destinations < 2 else self.factor
        return replace(self, sources=self.factor, destinations=others)


@dataclass(frozen=True, slots=True)
class Ports:
    """The rates of a level's link ports, in bytes per cycle."""

    read: float
    write: float
    network: Network
    memory: Memory

    @classmethod
    def of(cls, memory: Memory, network: Network) -> Ports:
        """The link ports of a memory, no faster than the network."""
        read = min(memory.link_read_bandwidth, network.bandwidth)
        write = min(memory.link_write_bandwidth, network.bandwidth)
        return cls(read, write, network, memory)


def link_network(level: Level, kind: CollectiveKind | None = None) -> Network:
    """
    Return the network among a level's instances.

    Raises `CostError` if it has none, or if a rate is 0 that collectives need, or those
    of `kind`: the root of a gather writes through its port to the levels below, too.
    """
    if level.link is None:
        raise CostError(
            f"a collective runs at {level.name}, whose instances no link joins; set "
            "link_transfers: true on it"
        )
    wanted = {
        f"link_read_bw of {level.name}": level.memory.link_read_bandwidth,
        f"link_write_bw of {level.name}": level.memory.link_write_bandwidth,
        f"bw of the links of {level.name}": level.link.bandwidth,
    }
    if kind is CollectiveKind.GATHER:
        wanted[f"child_write_bw of {level.name}"] = level.memory.child_write_bandwidth
    check_positive(f"a collective runs at {level.name}", wanted)
    return level.link


def exchange_cycles(
    exchange: CollectiveTraffic, level: Level, element_bytes: float, *, reduces: bool
) -> Real:
    """
    Cycles of a collective at one level, each instance moving every tile once.

    The sum of T_col_mem and T_col_noc of arXiv 2509.00599; zero for one instance.
    Raises `CostError` as `link_network` does.
    """
    network = link_network(level, exchange.kind)
    if exchange.sources < 2:
        return 0.0
    crossing = Crossing(
        exchange.kind,
        hops_to(network, exchange.sources),
        exchange.read_bytes / element_bytes,
        exchange.sources,
        element_bytes,
        explicit=True,
        reduces=reduces,
    )
    memory = memory_cycles(exchange, level.memory, network, linear=True)
    return memory + network_cycles(network, crossing)


def memory_cycles(
    exchange: CollectiveTraffic,
    memory: Memory,
    network: Network,
    *,
    linear: bool = False,
) -> Real:
    """
    Cycles of the link ports of one level for a collective.

    In the COMET tool, all-gather and all-reduce are quadratic in the instances; with
    `linear` each instance moves every tile once (arXiv 2509.00599, equation of
    T_col_mem). Raises `CostError` for a gather from one source, or a scatter to one
    destination.
    """
    ports = Ports.of(memory, network)
    match exchange.kind:
        case CollectiveKind.BROADCAST:
            return _broadcast(exchange, ports)
        case CollectiveKind.REDUCTION:
            return _reduction(exchange, ports)
        case CollectiveKind.ALL_GATHER:
            return _all_gather(exchange, ports, linear=linear)
        case CollectiveKind.ALL_REDUCE:
            return _all_reduce(exchange, ports, linear=linear)
        case CollectiveKind.SCATTER:
            return _scatter(exchange, ports)
        case CollectiveKind.GATHER:
            return _gather(exchange, ports)


def _broadcast(x: CollectiveTraffic, ports: Ports) -> Real:
    """Reads repeat per destination unless the network can multicast."""
    copies = 1 if ports.network.broadcast else x.destinations
    into = np.ceil(x.read_bytes / ports.write)
    return np.maximum(into, np.ceil(x.read_bytes / ports.read * copies))


def _reduction(x: CollectiveTraffic, ports: Ports) -> Real:
    """One write per source but the root's own, and one pass to reduce."""
    out, into = x.read_bytes / ports.read, x.read_bytes / ports.write
    if ports.network.reduction:
        return np.ceil(out + into + into)
    others = x.sources - 1
    return np.ceil(np.maximum(out * others, into * others) + into)


def _all_gather(x: CollectiveTraffic, ports: Ports, *, linear: bool) -> Real:
    """Every instance writes the tiles of all."""
    factor = 1 if linear else x.factor
    reads = max(1, x.sources - 1) if linear else x.sources * factor
    into = np.ceil(x.read_bytes * x.sources / ports.write * factor)
    if ports.network.broadcast:
        return into
    return np.maximum(into, np.ceil(x.read_bytes / ports.read * reads))


def _all_reduce(x: CollectiveTraffic, ports: Ports, *, linear: bool) -> Real:
    """Reduce, then broadcast; the tool charges nothing with reduction support only."""
    tiles = 1 if linear else x.sources
    out, into = x.read_bytes * tiles / ports.read, x.written_bytes * tiles / ports.write
    if ports.network.reduction and ports.network.broadcast:
        return np.ceil(into + out + into)
    if ports.network.reduction:
        return np.ceil(into + out + into + out * x.factor) if linear else 0 * out
    if ports.network.broadcast:
        return np.ceil((into + out) * x.factor + into)
    return np.ceil((2 * out + into) * x.factor + into)


def _gather(x: CollectiveTraffic, ports: Ports) -> Real:
    """The root writes all tiles but its own, over two ports."""
    if x.sources < 2:
        raise CostError(
            "a gather needs more than one source; drop it or name a level with more "
            "instances"
        )
    memory = ports.memory
    wide = min(2, x.sources - 1) * ports.network.bandwidth
    write = min(memory.link_write_bandwidth, wide, memory.child_write_bandwidth)
    into = (x.sources - 1) * x.written_bytes / (write * x.sources)
    return np.maximum(np.ceil(into), np.ceil(x.read_bytes / ports.read))


def _scatter(x: CollectiveTraffic, ports: Ports) -> Real:
    """
    The root reads all tiles but its own, over two ports; each then writes one.

    As in the COMET tool, the time of that write is divided by the instances, although
    the tile that one of them receives is a part already.
    """
    if x.destinations < 2:
        raise CostError(
            "a scatter needs more than one destination; drop it or name a level with "
            "more instances"
        )
    wide = min(2, x.destinations - 1) * ports.network.bandwidth
    read = min(ports.memory.link_read_bandwidth, wide)
    out = (x.destinations - 1) * x.read_bytes / (read * x.destinations)
    into = x.written_bytes / (x.destinations * ports.write)
    return np.ceil(out) + np.ceil(into)


def memory_energy(
    exchange: CollectiveTraffic, memory: Memory, network: Network
) -> Real:
    """The pJ of a collective's reads and writes at one level (COMET tool)."""
    x = exchange
    reads, writes = access_tiles(x, network)
    read, written = x.read_bytes / memory.width, written_tile(x) / memory.width
    return read * reads * memory.child_read_energy + (
        written * writes * memory.child_write_energy
    )


def written_tile(x: CollectiveTraffic) -> Real:
    """The bytes of one tile that a collective writes."""
    larger = x.kind in (CollectiveKind.SCATTER, CollectiveKind.ALL_REDUCE)
    return x.written_bytes if larger else x.read_bytes


def access_tiles(x: CollectiveTraffic, network: Network) -> tuple[float, float]:
    """
    The tiles that all instances read, and write, during a collective (COMET tool).
    """
    match x.kind:
        case CollectiveKind.GATHER:
            return 1, x.sources - 1
        case CollectiveKind.BROADCAST:
            return 1 if network.broadcast else x.destinations, x.destinations - 1
        case CollectiveKind.SCATTER:
            return (x.destinations - 1) / x.destinations, 1
        case CollectiveKind.REDUCTION:
            repeats = 1 if network.reduction else x.sources - 1
            return x.sources * repeats, repeats
        case CollectiveKind.ALL_GATHER:
            reads = 1 if network.broadcast else x.factor
            return x.sources * reads, x.sources * x.factor
        case CollectiveKind.ALL_REDUCE:
            if network.reduction:
                return x.sources, x.sources
            reads = x.factor if network.broadcast else 2 * x.factor
            return x.sources * reads, x.sources * x.factor
