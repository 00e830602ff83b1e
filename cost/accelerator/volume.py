"""
Tile extents, reuse, and the time of one transfer.

Sources: sections "data movement" of arXiv 2509.00599 and the COMET tool's behaviour.
Formulas of `Real` take numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from comet.cost.accelerator.hardware import Hardware, Memory, Network
from comet.cost.accelerator.mappings import Extents
from comet.cost.accelerator.problem import (
    Collective,
    Problem,
    Projection,
)
from comet.cost.collectives.formulas import CollectiveTraffic
from comet.cost.estimate import CostError
from comet.cost.reals import (
    Precision,
    Real,
    Truth,
    choose,
    double,
    larger,
    product,
    smaller,
    times,
    total,
)
from comet.kinds import CollectiveKind


def elements_of(
    projection: Iterable[tuple[str, ...]],
    extents: Extents,
    multiply: Callable[[Iterable[Real]], Real] = product,
) -> Real:
    """The elements of a tile; dimensions that share an axis add up."""
    return multiply(
        extents.get(axis[0], 0)
        if len(axis) == 1
        else total(extents.get(dim, 0) for dim in axis)
        for axis in projection
    )


@lru_cache(maxsize=1024)
def relevant(projection: Projection) -> frozenset[str]:
    """The dimensions that index a tensor."""
    return frozenset(dim for axis in projection for dim in axis)


def reuse(order: tuple[str, ...], factors: Extents, dims: frozenset[str]) -> Real:
    """
    Iterations of a nest that use the same tile: its innermost loops without `dims`.

    The product of the loops inside the innermost relevant loop of more than one
    iteration.
    """
    period: Real = 1.0
    stopped: Truth = False
    for dim in order:
        if dim in dims:
            repeats: Truth = factors[dim] > 1
            stopped = repeats if stopped is False else stopped | repeats
        else:
            period = times(period, choose(stopped, 1.0, factors[dim]))
    return period


def exchanged(
    problem: Problem, hardware: Hardware, node: Collective, tile: Extents | None
) -> tuple[dict[str, Real], CollectiveTraffic]:
    """
    Return the tile of a tensor after a collective, and the traffic.

    A gather or all-gather enlarges the tile along its dimension, a scatter divides it;
    integers stay integers. `tile` is the tile before the collective. Raises
    `CostError` if there is none.
    """
    if tile is None:
        raise CostError(
            f"{node.name} exchanges tensor {node.input} at {node.level}, where no node "
            "before it holds it; place it after one"
        )
    sources = hardware.instances(node.sources)
    destinations = hardware.instances(node.destinations)
    got, dim = dict(tile), node.dimension
    if dim in got:
        if node.kind in (CollectiveKind.GATHER, CollectiveKind.ALL_GATHER):
            got[dim] = got[dim] * sources
        elif node.kind is CollectiveKind.SCATTER:
            is_integer = isinstance(got[dim], int)
            got[dim] = (
                got[dim] // destinations if is_integer else got[dim] / destinations
            )
    read, written = (problem.projection(t, "") for t in (node.input, node.output))
    return got, CollectiveTraffic(
        node.kind,
        elements_of(read, tile) * (node.bits / 8),
        elements_of(written, got) * (node.bits / 8),
        sources,
        destinations,
        node.spatial_factor or sources,
    )


@dataclass(frozen=True, slots=True)
class Route:
    """
    The path of a transfer: the memory near the root, the network, and the child's side.
    """

    source: Memory
    network: Network
    child_read: float
    """Bytes per cycle out of the child, towards the root."""
    child_write: float

    @classmethod
    def of(cls, hardware: Hardware, source: str, destination: str) -> Route:
        """
        The route between two joined levels; raises `CostError` if no link joins them.
        """
        network = hardware.network(source, destination)
        child = hardware.level(destination)
        memory = hardware.level(source).memory
        if child.is_unit:
            return cls(memory, network, network.bandwidth, network.bandwidth)
        return cls(
            memory,
            network,
            child.memory.parent_read_bandwidth,
            child.memory.parent_write_bandwidth,
        )


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer between two levels: `unique` tiles over `spatial` instances."""

    size: Real
    """Elements of the tile of one child."""
    unique: Real
    spatial: Real
    element_bytes: float
    writes: bool
    accumulates: Truth


def memory_cycles(
    route: Route,
    transfer: Transfer,
    *,
    ported: bool,
    real: Precision = double,
) -> Real:
    """
    Cycles of the two memories at the ends of one transfer, the slower of both.

    The source uses min(ports, unique) ports, each no faster than the network; every
    child receives one tile. Without network support a tile is sent once per instance. A
    written tile that accumulates is read first. With `ported` each port has an equal
    part of the source's bandwidth (COMET tool), otherwise one port may use all of it.
    Source: T_mem = DV / BW of arXiv 2509.00599. `real` rounds to the precision.
    """
    source, network, t = route.source, route.network, transfer
    some = larger(t.unique, 1)
    ports = smaller(some, source.ports)
    tiles = some if t.writes else t.unique
    bandwidth = (
        source.child_write_bandwidth if t.writes else source.child_read_bandwidth
    )
    read = source.child_read_bandwidth
    if ported:
        bandwidth, read = (_shared(b, ports, source.ports) for b in (bandwidth, read))
    supported = network.reduction if t.writes else network.broadcast
    copies = 1 if supported else -(-t.spatial // some)
    data = real(copies) * real(tiles) * real(t.size) * real(t.element_bytes)
    out = np.ceil(data / real(smaller(bandwidth, ports * network.bandwidth)))
    if t.writes and t.accumulates is not False:
        out = out + choose(t.accumulates, np.ceil(data / real(read)), real(0))
    child = min(route.child_read if t.writes else route.child_write, network.bandwidth)
    into = np.ceil(real(t.size) * real(t.element_bytes) / real(child))
    return larger(out, choose(tiles == 0, 0.0, into))


def _shared(bandwidth: float, used: Real, ports: int) -> Real:
    """The bandwidth of the used ports, each with an equal part of the whole."""
    if ports == 1:
        return bandwidth
    return choose(used < ports, bandwidth // ports * used, bandwidth)


def transfer_kind(writes: bool, unique: int) -> CollectiveKind:
    """The kind of collective as which the network prices a transfer."""
    if writes:
        return CollectiveKind.GATHER
    return CollectiveKind.BROADCAST if unique == 1 else CollectiveKind.SCATTER
