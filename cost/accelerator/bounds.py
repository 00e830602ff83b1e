"""Lower bounds of the cost of mappings, for any factors."""

from __future__ import annotations

from comet.cost.accelerator.flow import build_flows
from comet.cost.accelerator.hardware import Hardware, check_positive
from comet.cost.accelerator.ideal import ideal_cost
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
    Return the least latency (cycles) and energy (pJ) of transfers of the root memory.

    `read` and `written` are bytes. Reads and writes follow each other on one bus; with
    two ports the busier one counts. Transfers may hide all other work, so nothing is
    added. The model `tool` has no bound (0), as it loses stalls of reads and wraps at
    32 bits. Raises CostError if the hardware file lacks the bandwidths.
    """
    if model == "tool":
        return 0.0, 0.0
    root, memory = hardware.levels[0].name, hardware.levels[0].memory
    wanted = {
        f"child_read_bw of {root}": memory.child_read_bandwidth,
        f"child_write_bw of {root}": memory.child_write_bandwidth,
        f"width of {root}": memory.width,
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

    A node is final if no completion changes its loops or those around it. The others
    are open for some operations: they have no loops yet, and their leaves take the
    remaining extents. Completions cut them further.

    Proof. Energy, and each term of `ideal`, is a sum of transfers and work. A transfer
    through a final node is that of every completion. Through an open one, a completion
    moves every element of the tile at least as often: cutting a dimension of a tensor
    moves smaller tiles more often, cutting another one repeats them. Cutting never
    reduces the work of units, as the ceilings of parts add up to at least that of the
    whole. For the latency of `paper` see `least_cycles`. `tool` has no bound (0), as it
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
    Return the cycles of the transfers of one mapping on the root memory's ports.

    The busier of reads and writes counts, at the memory's full bandwidth. No machine
    runs the mapping in less; the latency of `tool` may be below, as it loses stalls of
    reads. The bound is 0 if a spatial node moves a tensor that the node above does not
    list: the tool prices such mappings, but their transfers are not known.
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
