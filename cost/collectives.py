"""
The time and energy of collectives among the instances of one level, formulas by kind.

Memory time is what the levels' link ports need, network time what the mesh adds (`cost.noc`). Sources: the COMET tool, and
section "collectives" of arXiv 2509.00599.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from comet.cost.estimate import CostError
from comet.cost.hardware import Level, Memory, Network
from comet.cost.problem import CollectiveKind


@dataclass(frozen=True, slots=True)
class Exchange:
    """One collective in numbers."""

    kind: CollectiveKind
    read_bytes: float
    """Bytes of the tile one instance gives."""
    written_bytes: float
    """Bytes of the tile one instance ends with (of a scatter: of the whole divided by the instances)."""
    sources: int
    destinations: int
    factor: int
    """How many transfers follow each other where the network helps not (the mapping's spatial_factor)."""


def link_network(level: Level) -> Network:
    """The network among a level's instances; raises `CostError` where it has none."""
    if level.link is None:
        raise CostError(f"a collective runs at {level.name}, whose instances no link joins; set link_transfers: true on it")
    return level.link


def memory_cycles(exchange: Exchange, memory: Memory, network: Network) -> int:
    """
    Cycles the link ports of one level need for a collective (COMET tool, quadratic in the instances for an all-reduce).

    Raises `CostError` for a scatter to one instance.
    """
    x = exchange
    read = min(memory.link_read_bandwidth, network.bandwidth)
    write = min(memory.link_write_bandwidth, network.bandwidth)
    match x.kind:
        case CollectiveKind.GATHER:
            return _gather(x, memory, network)
        case CollectiveKind.BROADCAST:
            copies = 1 if network.broadcast else x.destinations
            return max(math.ceil(x.read_bytes / write), math.ceil(x.read_bytes / read * copies))
        case CollectiveKind.SCATTER:
            return _scatter(x, memory, network)
        case CollectiveKind.REDUCTION:
            out, into = x.read_bytes / read, x.read_bytes / write
            if network.reduction:
                return math.ceil(out + into + into)
            return math.ceil(max(out * (x.sources - 1), into * (x.sources - 1)) + into)
        case CollectiveKind.ALL_GATHER:
            out, into = x.read_bytes * x.sources / read, x.read_bytes * x.sources / write
            writes = math.ceil(into * x.factor)
            return writes if network.broadcast else max(writes, math.ceil(out * x.factor))
        case CollectiveKind.ALL_REDUCE:
            out, into = x.read_bytes * x.sources / read, x.written_bytes * x.sources / write
            return all_reduce_cycles(out, into, x.factor, network)


def all_reduce_cycles(out: float, into: float, factor: int, network: Network) -> int:
    """Cycles of an all-reduce's memory side; the COMET tool charges nothing for reduction without broadcast support."""
    if network.broadcast and network.reduction:
        return math.ceil(into + out + into)
    if network.broadcast:
        return math.ceil((into + out) * factor + into)
    if network.reduction:
        return 0
    return math.ceil((2 * out + into) * factor + into)


def _gather(x: Exchange, memory: Memory, network: Network) -> int:
    ports = min(2, x.sources - 1)
    read = min(memory.link_read_bandwidth, network.bandwidth)
    write = min(memory.link_write_bandwidth, ports * network.bandwidth, memory.child_write_bandwidth)
    if write == 0:
        raise CostError("a gather needs more than one source and a write bandwidth above zero")
    return max(math.ceil((x.sources - 1) * x.written_bytes / (write * x.sources)), math.ceil(x.read_bytes / read))


def _scatter(x: Exchange, memory: Memory, network: Network) -> int:
    if x.destinations < 2:
        raise CostError("a scatter needs more than one destination; drop it or name a level with more instances")
    read = min(memory.link_read_bandwidth, min(2, x.destinations - 1) * network.bandwidth)
    write = min(memory.link_write_bandwidth, network.bandwidth)
    out = (x.destinations - 1) * x.read_bytes / (read * x.destinations)
    return math.ceil(out) + math.ceil(x.written_bytes / (x.destinations * write))


def memory_energy(exchange: Exchange, memory: Memory, network: Network) -> float:
    """The pJ of a collective's reads and writes at one level (COMET tool)."""
    x, read, write = exchange, memory.child_read_energy, memory.child_write_energy
    given, left = x.read_bytes / memory.width, x.written_bytes / memory.width
    match x.kind:
        case CollectiveKind.GATHER:
            return given * read + (x.sources - 1) * given * write
        case CollectiveKind.BROADCAST:
            return given * read * (1 if network.broadcast else x.destinations) + (x.destinations - 1) * given * write
        case CollectiveKind.SCATTER:
            return (x.destinations - 1) * given / x.destinations * read + left * write
        case CollectiveKind.REDUCTION:
            repeats = 1 if network.reduction else x.sources - 1
            return (x.sources * given * read + given * write) * repeats
        case CollectiveKind.ALL_GATHER:
            return x.sources * given * (read * (1 if network.broadcast else x.factor) + write * x.factor)
        case CollectiveKind.ALL_REDUCE:
            reads, writes = x.factor, x.factor
            if network.reduction:
                reads = writes = 1
            elif not network.broadcast:
                reads = 2 * x.factor
            return x.sources * (given * read * reads + left * write * writes)
