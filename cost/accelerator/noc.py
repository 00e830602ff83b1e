"""
Latency and energy of the on-chip network.

A mesh of edge n moves a tile over 2 (n - 1) hops per phase (COMET, arXiv 2509.00599,
section on collectives); energy is the Orion router model of
`cost.accelerator.router`. Sizes and instance counts may be numpy arrays where a formula
has no table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from comet.cost.accelerator.hardware import Network
from comet.cost.accelerator.router import mesh_energy
from comet.cost.estimate import CostError
from comet.cost.reals import Precision, Real, double
from comet.kinds import CollectiveKind

TABLED_MESHES = {(1, 1): 0, (2, 2): 2, (4, 4): 6, (16, 16): 30}
"""The meshes the COMET tool supports, and the hops of one phase."""

REDUCTION_ENERGY = {"add": 0.11, "sub": 0.11, "max": 0.0025, "mult": 0.64}
"""pJ per element combined in the network."""

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


def mesh_used(mesh: tuple[int, int] | None, instances: int) -> tuple[int, int]:
    """
    The part of the mesh that `instances` occupy, the smallest square if it fits (COMET
    tool).

    If only one side of the mesh is as long as the square, the other is filled
    completely; in both cases the tool divides by the second side.
    """
    # The root of a float would overflow, or be inexact, for large numbers.
    edge = math.isqrt(instances - 1) + 1 if instances > 0 else 0
    if mesh is None:
        return edge, edge
    x, y = mesh
    if x >= edge and y >= edge:
        return edge, edge
    if x < edge and y < edge:
        return x, y
    rest = (instances + y - 1) // y
    return (rest, y) if x >= edge else (y, rest)


def tabled_hops(mesh: tuple[int, int]) -> int:
    """
    The hops of one phase; raises `CostError` for a mesh outside the COMET tool's table.
    """
    if (hops := TABLED_MESHES.get(mesh)) is None:
        known = ", ".join(f"{x}x{y}" for x, y in TABLED_MESHES)
        raise CostError(
            f"the COMET tool has no hop count for a {mesh[0]}x{mesh[1]} mesh; use one "
            f"of {known}, or model paper"
        )
    return hops


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


def network_energy(
    network: Network,
    mesh: tuple[int, int],
    crossing: Crossing,
    reduction: str | None = None,
) -> float:
    """
    Return the pJ of one tile across the mesh, in single precision (COMET tool).

    Routers and links by `cost.accelerator.router.mesh_energy`; combining by
    `REDUCTION_ENERGY` of the `reduction` per element, hop and instance.
    """
    c = crossing
    moved = c.size * c.hops
    combining = 0.0
    if c.kind in REDUCING and reduction is not None:
        energy = np.float32(REDUCTION_ENERGY[reduction])
        combining = float(np.float32(moved * c.instances) * energy)
    if c.explicit and c.kind is CollectiveKind.SCATTER:
        moved = int(np.float32(moved) / np.float32(c.instances))
    moved *= phases(c.kind)
    bits = int(np.float32(moved) * np.float32(c.element_bytes * 8))
    hops = phases(c.kind) * c.hops
    width, delay = network.channel_width, network.queuing_delay
    routed = mesh_energy(width, hops, delay, bits, mesh[0])
    return float(np.float32(routed + combining))


def mesh_bits_energy(
    network: Network, bits: Real, instances: Real, rounds: int
) -> Real:
    """
    The pJ to move a tile of `bits` bits across a mesh `rounds` times, unrounded.

    As `network_energy`, for numbers and arrays; zero on one instance. If the instances
    fill several meshes, each takes the same energy.
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
