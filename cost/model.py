"""The models by name: one call prices one mapping."""

from __future__ import annotations

from comet.cost.estimate import CostError, Estimate, ModelName, NodeEstimate
from comet.cost.hardware import Hardware
from comet.cost.problem import Leaf, Problem


def price(problem: Problem, hardware: Hardware, model: ModelName = "paper") -> Estimate:
    """
    The cost of one mapping under one model.

    Raises `CostError` with one sentence where the mapping is illegal, does not fit, or
    the model has no answer.
    """
    if model == "tool":
        return price_tool(problem, hardware)
    raise CostError(f"there is no model {model!r}; use tool, paper or ideal")


def price_tool(problem: Problem, hardware: Hardware) -> Estimate:
    """
    The COMET tool's cost: its root cycles, its energy with networks, its stall table
    summed.
    """
    from comet.cost.legality import check_tool
    from comet.cost.tool.energy import energies
    from comet.cost.tool.latency import latencies
    from comet.cost.tool.report import energy_report, stall_rows

    check_tool(problem, hardware)
    latency = latencies(problem, hardware)
    energy = energies(latency)
    table = stall_rows(latency, energy)
    rows = {row.node: row for row in table}
    spent = energy_report(latency, energy)
    nodes = tuple(
        NodeEstimate(
            node.index,
            node.name,
            latency.cycles.get(node.index, 0),
            *(
                (row.compulsory, row.optional, row.window, row.runs)
                if (row := rows.get(node.index))
                else ()
            ),
        )
        for node in problem.nodes
        if not isinstance(node, Leaf)
    )
    return Estimate(
        "tool",
        latency.cycles[problem.root.index],
        spent.total,
        sum(row.compulsory * row.runs for row in table),
        sum(row.optional * row.runs for row in table),
        sum(row.window * row.runs for row in table if row.is_leaf),
        nodes,
        spent.by_level,
    )
