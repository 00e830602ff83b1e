"""
Latency and energy of the on-chip network.

A mesh of edge n moves a tile over 2 (n - 1) hops per phase (COMET, arXiv 2509.00599,
section on collectives); energy is the Orion router model of `cost.router`. Sizes and
instance counts may be numpy arrays where a formula has no table.
"""

from __future__ import annotations

import math
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
"""Kinds that cross the mesh twice: in and out."""

REDUCING = (CollectiveKind.REDUCTION, CollectiveKind.ALL_REDUCE)
"""Kinds that combine values."""


def mesh_used(mesh: tuple[int, int] | None, instances: int) -> tuple[int, int]:
    """
    The part of the mesh that `instances` occupy, the smallest square if it fits (COMET
    tool).

    If only one side is long enough, the other is filled completely; the tool takes the
    second side in both such cases.
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
    kind: CollectiveKind,
    network: Network,
    hops: Real,
    size: Real,
    instances: Real,
    element_bytes: float,
    *,
    explicit: bool = False,
    reduces: bool = False,
    real: Precision = double,
) -> Real:
    """
    Cycles to move one tile of `size` elements across the mesh.

    Router latency plus queueing of the flits, twice for two-phase kinds, plus combining
    at 16 elements a cycle. `explicit` separates a collective from an implicit transfer
    (an explicit scatter splits its tile); `real` fixes the precision, `numpy.float32`
    for the COMET tool. Source: T_noc of arXiv 2509.00599 with the tool's hops and data.
    """
    moved = size * hops
    combining = (
        real(real(moved * instances) / REDUCTION_LANES)
        if reduces and kind in REDUCING
        else real(0)
    )
    if explicit and kind is CollectiveKind.SCATTER:
        moved = np.floor(real(moved) / real(instances))
    queueing = (
        real(moved)
        * real(element_bytes * 8)
        / real(network.channel_width)
        * real(network.queuing_delay)
    )
    router = hops * network.hop_latency
    if kind in TWO_PHASE:
        return real(real(2 * router) + real(queueing + queueing)) + combining
    return real(real(router) + queueing) + combining


def phases(kind: CollectiveKind) -> int:
    """How often a collective crosses the mesh."""
    return 2 if kind in TWO_PHASE else 1


def network_energy(
    kind: CollectiveKind,
    network: Network,
    mesh: tuple[int, int],
    hops: int,
    size: int,
    instances: int,
    element_bytes: float,
    *,
    explicit: bool = False,
    reduction: str | None = None,
) -> float:
    """
    The pJ to move one tile of `size` elements across the mesh, single precision (COMET
    tool).

    Routers and links by `cost.router.mesh_energy`; combining by `REDUCTION_ENERGY` per
    element, hop and instance.
    """
    moved = size * hops
    combining = 0.0
    if kind in REDUCING and reduction is not None:
        combining = float(
            np.float32(moved * instances) * np.float32(REDUCTION_ENERGY[reduction])
        )
    if explicit and kind is CollectiveKind.SCATTER:
        moved = int(np.float32(moved) / np.float32(instances))
    moved *= phases(kind)
    bits = int(np.float32(moved) * np.float32(element_bytes * 8))
    routed = mesh_energy(
        network.channel_width, phases(kind) * hops, network.queuing_delay, bits, mesh[0]
    )
    return float(np.float32(routed + combining))


def mesh_bits_energy(
    network: Network, bits: Real, instances: Real, rounds: int
) -> Real:
    """
    The pJ to move a tile of `bits` bits across a mesh `rounds` times, unrounded.

    As `network_energy`, for numbers and arrays; zero on one instance. Every mesh of
    several that the instances fill takes the same energy.
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
