"""The models by name: one call prices one mapping, or many of one template."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comet.cost.estimate import CostError, Estimate, ModelName, NodeEstimate
from comet.cost.flow import Mappings
from comet.cost.hardware import Hardware
from comet.cost.problem import Collective, Leaf, Problem


@dataclass(frozen=True)
class Prices:
    """What many mappings of one template cost, one array element each."""

    latency: NDArray[np.float64]
    """Cycles."""
    energy: NDArray[np.float64]
    """pJ."""
    fits: NDArray[np.bool_]
    """Whether every level holds what is alive in it."""


def price(problem: Problem, hardware: Hardware, model: ModelName = "paper") -> Estimate:
    """
    The cost of one mapping under one model.

    Raises `CostError` with one sentence where the mapping is illegal, does not fit, or
    the model has no answer.
    """
    match model:
        case "tool":
            return _price_tool(problem, hardware)
        case "paper":
            return _price_paper(problem, hardware)
        case "ideal":
            return _price_ideal(problem, hardware)


def price_many(
    mappings: Mappings, hardware: Hardware, model: ModelName = "paper"
) -> Prices:
    """
    The costs of many mappings of one legal template.

    Only the structure is checked; extents and capacity are for the caller, who finds
    the latter in `Prices.fits`. Raises `CostError` as `price` does, and for model
    `tool`, whose integer arithmetic is priced one mapping at a time.
    """
    from comet.cost.capacity import fits
    from comet.cost.legality import check_structure

    check_structure(mappings.template, hardware)
    if model == "paper":
        from comet.cost.paper.energy import energies
        from comet.cost.paper.latency import latencies

        latency = latencies(mappings, hardware)
        cycles = latency.root.cycles
        spent = energies(mappings, hardware, latency.flows).total
    elif model == "ideal":
        from comet.cost.ideal import ideal_cost

        ideal = ideal_cost(mappings, hardware)
        cycles, spent = ideal.latency, ideal.energy
    else:
        raise CostError(
            "model tool prices one mapping at a time; use price, or model paper or "
            "ideal"
        )
    room = fits(mappings, hardware)
    latency_, energy_, room_ = np.broadcast_arrays(cycles, spent, room)
    return Prices(latency_, energy_, room_)


def _price_paper(problem: Problem, hardware: Hardware) -> Estimate:
    from comet.cost.legality import check_live
    from comet.cost.paper.energy import energies
    from comet.cost.paper.latency import latencies

    check_live(problem, hardware)
    mappings = Mappings(problem)
    latency = latencies(mappings, hardware)
    energy = energies(mappings, hardware, latency.flows)
    nodes: list[NodeEstimate] = []
    for node in problem.nodes:
        if isinstance(node, Leaf):
            continue
        cost = latency.nodes[node.index]
        own = latency.nests.get(node.index, [])
        stalls = sum(float(n.fill + n.drain + n.forced) for n in own)
        if isinstance(node, Collective):
            stalls = float(cost.compulsory)
        nodes.append(
            NodeEstimate(
                node.index,
                node.name,
                float(cost.cycles),
                stalls,
                sum(float(n.stalls) for n in own),
                sum(float(n.work) for n in own),
                float(energy.runs[node.index]),
            )
        )
    root = latency.root
    spent = {**energy.by_level, **energy.by_network}
    by_level = {name: float(value) for name, value in sorted(spent.items())}
    return Estimate(
        "paper",
        float(root.cycles),
        float(energy.total),
        float(root.compulsory),
        float(root.optional),
        float(root.window),
        tuple(nodes),
        by_level,
    )


def _price_ideal(problem: Problem, hardware: Hardware) -> Estimate:
    from comet.cost.ideal import ideal_cost
    from comet.cost.legality import check

    check(problem, hardware)
    cost = ideal_cost(Mappings(problem), hardware)
    by_level = {name: float(value) for name, value in sorted(cost.by_level.items())}
    latency = float(cost.latency)
    return Estimate(
        "ideal",
        latency,
        float(cost.energy),
        0.0,
        latency - float(cost.work),
        float(cost.work),
        (),
        by_level,
    )


def _price_tool(problem: Problem, hardware: Hardware) -> Estimate:
    """Its root cycles, its energy with networks, its stall table summed."""
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
    nodes: list[NodeEstimate] = []
    for node in problem.nodes:
        if isinstance(node, Leaf):
            continue
        cycles = latency.cycles.get(node.index, 0)
        if (row := rows.get(node.index)) is None:
            nodes.append(NodeEstimate(node.index, node.name, cycles))
        else:
            stalls = row.compulsory, row.optional, row.window
            nodes.append(NodeEstimate(node.index, node.name, cycles, *stalls, row.runs))
    return Estimate(
        "tool",
        latency.cycles[problem.root.index],
        spent.total,
        sum(row.compulsory * row.runs for row in table),
        sum(row.optional * row.runs for row in table),
        sum(row.window * row.runs for row in table if row.is_leaf),
        tuple(nodes),
        spent.by_level,
    )
