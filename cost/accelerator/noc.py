"""
Latency and energy of the on-chip network.

A mesh of edge n moves a tile over 2 (n - 1) hops per phase (COMET, arXiv 2509.00599,
section on collectives); energy is the Orion router model of
`cost.accelerator.router`. Sizes and instance counts may be numpy arrays where a formula
has no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from comet.cost.accelerator.hardware import Network
from comet.cost.accelerator.router import mesh_energy
from comet.cost.reals import Precision, Real, double
from comet.kinds import CollectiveKind

REDUCTION_LANES = 16.0
"""Elements a router combines per cycle."""

TWO_PHASE = (CollectiveKind.ALL_GATHER, CollectiveKind.ALL_REDUCE)
"""Kinds that cross the mesh twice, to a root and back."""

REDUCING = (CollectiveKind.REDUCTION, CollectiveKind.ALL_REDUCE)
"""Kinds that combine values."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A tile that crosses the mesh of its instances."""

    kind: CollectiveKind
    hops: Real
    """Hops of one phase."""
    size: Real
    """Elements of the tile."""
    instances: Real
    element_bytes: float
    explicit: bool = False
    """Whether it is a collective, and no transfer (its scatter divides the tile)."""
    reduces: bool = False
    """Whether routers combine values on the way, if the kind does."""


def hops_to(network: Network, instances: Real) -> Real:
    """
    The hops of one phase over `instances` instances on any mesh, numbers or arrays.

    2 (n - 1) on the smallest square of edge n, as in arXiv 2509.00599. If the mesh is
    too narrow for that, its short side is filled and the long one as far as needed;
    instances of several meshes are in a square of squares.
    """
    if isinstance(instances, int | float):
        return _hops_of_number(network.mesh, instances)
    return _hops(network.mesh, instances)


@lru_cache(maxsize=1024)
def _hops_of_number(mesh: tuple[int, int] | None, instances: float) -> float:
    return float(_hops(mesh, instances))


def _hops(mesh: tuple[int, int] | None, instances: Real) -> Real:
    edge = np.ceil(np.sqrt(instances))
    square = 2 * (edge - 1)
    if mesh is None:
        return square
    short = min(mesh)
    narrow = short + np.ceil(instances / short) - 2
    inside = np.less_equal(instances, mesh[0] * mesh[1])
    return np.where(inside & np.greater(edge, short), narrow, square)


def network_cycles(
    network: Network, crossing: Crossing, *, real: Precision = double
) -> Real:
    """
    Return the cycles of one tile across the mesh.

    Router latency plus queueing of the flits, twice for two-phase kinds, plus combining
    at `REDUCTION_LANES` elements per cycle. `real` rounds to the precision, that of
    `numpy.float32` for the COMET tool. Source: T_noc of arXiv 2509.00599 with the
    tool's hops and data.
    """
    c = crossing
    moved = c.size * c.hops
    combining = real(0)
    if c.reduces and c.kind in REDUCING:
        combining = real(real(moved * c.instances) / REDUCTION_LANES)
    if c.explicit and c.kind is CollectiveKind.SCATTER:
        moved = np.floor(real(moved) / real(c.instances))
    queueing = (
        real(moved)
        * real(c.element_bytes * 8)
        / real(network.channel_width)
        * real(network.queuing_delay)
    )
    router = c.hops * network.hop_latency
    if c.kind in TWO_PHASE:
        return real(real(2 * router) + real(queueing + queueing)) + combining
    return real(real(router) + queueing) + combining


def phases(kind: CollectiveKind) -> int:
    """Return how often a collective crosses the mesh."""
    return 2 if kind in TWO_PHASE else 1


def mesh_bits_energy(
    network: Network, bits: Real, instances: Real, rounds: int
) -> Real:
    """
    The pJ to move a tile of `bits` bits across a mesh `rounds` times, unrounded.

    By `cost.accelerator.router`, for numbers and arrays; zero on one instance. If the
    instances fill several meshes, each takes the same energy.
    """
    hops = hops_to(network, instances)
    edge = np.ceil(np.sqrt(instances))
    meshes: Real = 1.0
    if network.mesh is not None:
        x, y = network.mesh
        edge = np.minimum(edge, max(x, y))
        meshes = np.ceil(instances / (x * y))
    width, delay = network.channel_width, network.queuing_delay
    moved = rounds * hops * bits
    routed = mesh_energy(width, rounds * hops, delay, moved, edge)
    return np.where(np.equal(instances, 1), 0.0, routed * meshes)
