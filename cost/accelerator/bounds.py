"""Lower bounds of the cost of mappings, for any factors."""

from __future__ import annotations

from comet.cost.accelerator.flow import build_flows
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.ideal import ideal_cost
from comet.cost.accelerator.legality import check_positive
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.bound import OpenLoops, least_cycles
from comet.cost.accelerator.paper.energy import energies
from comet.cost.accelerator.problem import Problem
from comet.cost.accelerator.visits import visits
from comet.cost.estimate import CostError, ModelName
from comet.cost.reals import Real


def crossing_bound(
    read: float, written: float, hardware: Hardware, model: ModelName
) -> tuple[float, float]:
    """
    Return what bytes that cross the port of the root memory cost at least.

    Reads and writes take turns on one bus; with two ports the busier one counts.
    Transfers may hide all other work, so nothing is added. The model `tool` has no
    bound: it loses stalls of reads and wraps at 32 bits. Raises CostError if the
    hardware file does not give the bandwidths.
    """
    if model == "tool":
        return 0.0, 0.0
    root, memory = hardware.levels[0].name, hardware.levels[0].memory
    wanted = {
        f"{root} its child_read_bw": memory.child_read_bandwidth,
        f"{root} its child_write_bw": memory.child_write_bandwidth,
        f"{root} its width": memory.width,
    }
    check_positive(f"arguments and results cross {root}", wanted)
    times = read / memory.child_read_bandwidth, written / memory.child_write_bandwidth
    energy = read * memory.child_read_energy + written * memory.child_write_energy
    latency = sum(times) if memory.one_bus or model == "ideal" else max(times)
    return latency, energy / memory.width


def completion_bound(
    mappings: Mappings, hardware: Hardware, open_loops: OpenLoops, model: ModelName
) -> tuple[Real, Real]:
    """
    Return the least latency (cycles) and energy (pJ) of all completions of `mappings`.

    A node is final if no completion changes its loops or those around it; the others
    are open for some operations. Those have no loops yet, and their leaves have all
    that is left. Completions cut them further.

    Proof. Energy, and each term of `ideal`, is a sum of transfers and work. A transfer
    through a final node is that of every completion. Through an open one, a completion
    moves every element of the tile at least as often: cutting a dimension of a tensor
    moves more of smaller tiles, cutting another one repeats them. Work of units does
    not shrink by cutting, as the ceilings of parts add up to at least that of the
    whole. For the latency of `paper` see `least_cycles`. `tool` has no bound, as it
    wraps at 32 bits.
    """
    if model == "tool":
        return 0.0, 0.0
    flows = build_flows(mappings, hardware)
    if model == "ideal":
        cost = ideal_cost(mappings, hardware, flows)
        return cost.latency, cost.spent.total
    return (
        least_cycles(mappings, hardware, flows, open_loops),
        energies(mappings, hardware, flows).total,
    )


def roofline(problem: Problem, hardware: Hardware) -> float:
    """
    Return the cycles that what one mapping moves needs on the root memory's ports.

    The busier of reads and writes counts, at the memory's full bandwidth. No machine
    runs the mapping in less; the model `tool` may say so, as it loses stalls of reads.
    0, which says nothing, if a spatial node moves a tensor that the node above does not
    list: the tool prices such mappings, but what they move is not known.
    """
    root, mappings = hardware.levels[0], Mappings(problem)
    try:
        flows = build_flows(mappings, hardware)
    except CostError:
        return 0.0
    moved = {False: 0.0, True: 0.0}
    for visit in visits(mappings, flows):
        for flow, size in zip(visit.flows, visit.moved, strict=True):
            if flow.entry.source == root.name:
                moved[flow.writes] += float(size) * float(flow.unique)
    read = moved[False] / root.memory.child_read_bandwidth
    written = moved[True] / root.memory.child_write_bandwidth
    return max(read, written)
