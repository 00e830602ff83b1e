"""
Transfers and collectives on the mesh, as the COMET tool counts them.

The tool has a table of hops for a few meshes and computes in single precision; the
formulas are those of `cost.accelerator.noc` and `cost.collectives.formulas`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from comet.cost.accelerator.hardware import Level, Network
from comet.cost.accelerator.noc import REDUCING, Crossing, network_cycles, phases
from comet.cost.accelerator.router import mesh_energy
from comet.cost.collectives.formulas import (
    CollectiveTraffic,
    link_network,
    memory_cycles,
    memory_energy,
)
from comet.cost.estimate import CostError
from comet.cost.reals import single
from comet.kinds import CollectiveKind

TABLED_MESHES = {(1, 1): 0, (2, 2): 2, (4, 4): 6, (16, 16): 30}
"""The meshes the COMET tool supports, and the hops of one phase."""

REDUCTION_ENERGY = {"add": 0.11, "sub": 0.11, "max": 0.0025, "mult": 0.64}
"""pJ per element combined in the network."""


@dataclass(frozen=True)
class CollectiveCost:
    """The cost of one execution of a collective."""

    cycles: int
    memory_energy: float
    """pJ."""
    network_energy: float
    """pJ."""


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
        meshes = ", ".join(f"{x}x{y}" for x, y in TABLED_MESHES)
        raise CostError(
            f"the COMET tool has no hop count for a {mesh[0]}x{mesh[1]} mesh; use one "
            f"of {meshes}, or model paper"
        )
    return hops


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


def tool_cost(
    exchange: CollectiveTraffic,
    level: Level,
    element_bytes: float,
    reduction: str | None,
) -> CollectiveCost:
    """
    The cost of one execution of a collective at one level, as the COMET tool counts it.

    `reduction` is that of a collective that combines values, such as max. Raises
    `CostError` as `link_network` does.
    """
    network = link_network(level, exchange.kind)
    stored = float(memory_energy(exchange, level.memory, network))
    memory = int(memory_cycles(exchange, level.memory, network))
    if exchange.sources < 2:
        return CollectiveCost(memory, stored, 0.0)
    mesh = mesh_used(network.mesh, exchange.sources)
    crossing = Crossing(
        exchange.kind,
        tabled_hops(mesh),
        int(exchange.read_bytes / element_bytes),
        exchange.sources,
        element_bytes,
        explicit=True,
        reduces=reduction is not None,
    )
    cycles = network_cycles(network, crossing, real=single)
    energy = network_energy(network, mesh, crossing, reduction)
    return CollectiveCost(memory + int(cycles), stored, energy)
