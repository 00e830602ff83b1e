"""The COMET tool's model as estimates."""

from __future__ import annotations

from comet.cost.accelerator.bounds import roofline
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_tool
from comet.cost.accelerator.problem import Leaf, Node, Problem
from comet.cost.accelerator.tool.energy import energies
from comet.cost.accelerator.tool.latency import latencies
from comet.cost.accelerator.tool.report import StallRow, energy_report, stall_rows
from comet.cost.accelerator.tool.state import Latency
from comet.cost.estimate import Estimate, NodeEstimate


def price(problem: Problem, hardware: Hardware) -> Estimate:
    """
    Return root cycles, energy with networks, and the sums of the stall table.

    Raises `CostError` if the tool would reject the mapping, crash or hang.
    """
    check_tool(problem, hardware)
    latency = latencies(problem, hardware)
    energy = energies(latency)
    table = stall_rows(latency, energy)
    rows = {row.node: row for row in table}
    spent = energy_report(latency, energy)
    return Estimate(
        "tool",
        latency.cycles[problem.root.index],
        spent.total,
        sum(row.compulsory * row.runs for row in table),
        sum(row.optional * row.runs for row in table),
        sum(row.window * row.runs for row in table if row.is_leaf),
        tuple(
            _node(latency, node, rows.get(node.index))
            for node in problem.nodes
            if not isinstance(node, Leaf)
        ),
        spent.by_level,
        roofline(problem, hardware),
    )


def _node(latency: Latency, node: Node, row: StallRow | None) -> NodeEstimate:
    cycles = latency.cycles.get(node.index, 0)
    if row is None:
        return NodeEstimate(node.index, node.name, cycles)
    stalls = row.compulsory, row.optional, row.window
    return NodeEstimate(node.index, node.name, cycles, *stalls, row.runs)
