"""The model `paper` as estimates."""

from __future__ import annotations

from comet.cost.accelerator.flow import Flows, build_flows
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_sizes, check_structure
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.energy import Energy, energies
from comet.cost.accelerator.paper.latency import Latency, latencies
from comet.cost.accelerator.problem import Collective, Leaf, Node, Problem
from comet.cost.estimate import Estimate, NodeEstimate
from comet.cost.reals import Real, total


def price(problem: Problem, hardware: Hardware) -> Estimate:
    """The cost of one mapping; raises `CostError` if it is illegal or too large."""
    mappings = Mappings(problem)
    check_structure(problem, hardware)
    flows = build_flows(mappings, hardware)
    check_sizes(problem, hardware, flows.tiles)
    latency = latencies(mappings, hardware, flows)
    energy = energies(mappings, hardware, latency.flows)
    spent = {**energy.by_level, **energy.by_network}
    root = latency.root
    return Estimate(
        "paper",
        float(root.cycles),
        float(energy.total),
        float(root.compulsory),
        float(root.optional),
        float(root.window),
        tuple(
            _node(latency, energy, node)
            for node in problem.nodes
            if not isinstance(node, Leaf)
        ),
        {name: float(value) for name, value in sorted(spent.items())},
    )


def costs(mappings: Mappings, hardware: Hardware, flows: Flows) -> tuple[Real, ...]:
    """The costs of mappings whose flows are known, in the order of `Prices`."""
    root = latencies(mappings, hardware, flows).root
    energy = energies(mappings, hardware, flows).total
    return root.cycles, energy, root.compulsory, root.optional, root.window


def _node(latency: Latency, energy: Energy, node: Node) -> NodeEstimate:
    cost, nests = latency.nodes[node.index], latency.nests.get(node.index, [])
    stalls = total(n.fill + n.drain + n.forced for n in nests)
    if isinstance(node, Collective):
        stalls = cost.compulsory
    return NodeEstimate(
        node.index,
        node.name,
        float(cost.cycles),
        float(stalls),
        float(total(n.stalls for n in nests)),
        float(total(n.work for n in nests)),
        float(energy.runs[node.index]),
    )
