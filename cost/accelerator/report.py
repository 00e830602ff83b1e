"""
All figures of one mapping under one model, in the shape of the COMET tool's report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from comet.cost.accelerator.bounds import roofline
from comet.cost.accelerator.compute import throughput
from comet.cost.accelerator.flow import leaf_dims
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_tool
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import Collective, Leaf, Problem, Tile, walk_tiles
from comet.cost.accelerator.tool.energy import energies
from comet.cost.accelerator.tool.latency import latencies
from comet.cost.accelerator.tool.report import (
    energy_report,
    ideal_cycles,
    stall_rows,
    stall_table,
    total_cycles,
    utilization,
)
from comet.cost.accelerator.tool.state import node_cycles
from comet.cost.estimate import Estimate, ModelName, NodeEstimate

Table: TypeAlias = dict[str, dict[str, float]]
"""
Cycles by unit and column: CS (compulsory stalls), OS (optional stalls), TMW (work).
"""

REUSE = "reuse and overlap"
"""The table row that makes the sum of all rows the latency."""


@dataclass(frozen=True)
class Report:
    """The figures of a mapping, in cycles and pJ."""

    model: ModelName
    network_energy: bool
    """Whether the energies include networks."""
    root_cycles: float
    total_cycles: float
    """Of `tool`: the COMET tool's "Total Cycles", which is not the latency."""
    total_energy_pj: float
    energy_by_level: Mapping[str, float]
    table: Table
    nodes: Mapping[str, float]
    """Cycles of one execution by node, in document order."""
    ideal_cycles: Mapping[str, float]
    """Cycles of each operation if all instances of its unit worked all the time."""
    utilization: Mapping[str, float]
    """Ideal cycles over the root's, by unit."""
    roofline: float = 0.0
    """The least cycles of the root memory's transfers; set for the model `tool`."""

    @property
    def keys(self) -> dict[str, object]:
        """The figures by name, for JSON."""
        return {
            "model": self.model,
            "network_energy": self.network_energy,
            "root_cycles": self.root_cycles,
            "total_cycles": self.total_cycles,
            "total_energy_pj": self.total_energy_pj,
            "energy_by_level": _with_total(self.energy_by_level),
            "table": self.table,
            "nodes": dict(self.nodes),
            "ideal_cycles": _with_total(self.ideal_cycles),
            "utilization": _with_total(self.utilization),
        }


def _with_total(figures: Mapping[str, float]) -> dict[str, float]:
    return {**figures, "Total": sum(figures.values())}


def report(
    problem: Problem,
    hardware: Hardware,
    model: ModelName = "paper",
    *,
    network_energy: bool = True,
) -> Report:
    """
    Return the figures of one mapping; without `network_energy` networks spend 0 pJ.

    Raises `CostError` as `price` does.
    """
    if model == "tool":
        return _tool_report(problem, hardware, network_energy=network_energy)
    estimate = price(problem, hardware, model)
    if not network_energy:
        estimate = _without_networks(estimate)
    works = tuple(unit_work(problem, hardware))
    return Report(
        model,
        network_energy and model != "ideal",
        estimate.latency,
        estimate.latency,
        estimate.energy,
        estimate.energy_by_level,
        _table(problem, estimate),
        {node.name: node.cycles for node in estimate.nodes},
        {work.operation: work.cycles for work in works},
        _utilization(works, estimate.latency),
    )


def _without_networks(estimate: Estimate) -> Estimate:
    by_level = {k: v for k, v in estimate.energy_by_level.items() if "<->" not in k}
    return replace(estimate, energy=sum(by_level.values()), energy_by_level=by_level)


def _tool_report(
    problem: Problem, hardware: Hardware, *, network_energy: bool
) -> Report:
    check_tool(problem, hardware)
    latency = latencies(problem, hardware)
    energy = energies(latency)
    rows = stall_rows(latency, energy)
    spent = energy_report(latency, energy, network=network_energy)
    ideal = ideal_cycles(latency)
    return Report(
        "tool",
        network_energy,
        latency.cycles[problem.root.index],
        total_cycles(rows),
        spent.total,
        spent.by_level,
        {unit: {**cells} for unit, cells in stall_table(problem, rows).items()},
        node_cycles(latency),
        ideal,
        utilization(latency, ideal),
        roofline(problem, hardware),
    )


def _table(problem: Problem, estimate: Estimate) -> Table:
    """Stalls by level, work by operation; the last row makes the sum the latency."""
    nodes = {node.index: node for node in problem.nodes}
    table: Table = {}
    for cost in estimate.nodes:
        _count(table, nodes[cost.index], cost)
    for cells in table.values():
        cells["Total"] = sum(cells.values())
    rest = estimate.latency - sum(cells["Total"] for cells in table.values())
    if table and abs(rest) >= 0.5:
        table[REUSE] = {"CS": rest, "Total": rest}
    return table


def _count(table: Table, node: Tile | Collective | Leaf, cost: NodeEstimate) -> None:
    if isinstance(node, Collective):
        row = table.setdefault(f"{node.kind.upper()}-{node.index}", {})
        row["CS"] = row.get("CS", 0.0) + cost.cycles * cost.executions
        return
    if not isinstance(node, Tile):
        return
    if cost.compulsory_stalls or cost.optional_stalls:
        levels = dict.fromkeys(entry.source for entry in node.entries)
        row = table.setdefault("-".join(levels), {"CS": 0.0, "OS": 0.0})
        row["CS"] += cost.compulsory_stalls * cost.executions
        row["OS"] += cost.optional_stalls * cost.executions
    if node.is_leaf:
        row = table.setdefault(node.leaf.operation, {"TMW": 0.0})
        row["TMW"] += cost.memory_window * cost.executions


@dataclass(frozen=True)
class UnitWork:
    """An operation on all instances of its unit."""

    operation: str
    unit: str
    points: int
    """The points of the iteration space; for a product, multiply-accumulates."""
    rate: float
    """The most points per cycle, of all instances."""

    @property
    def cycles(self) -> float:
        """Cycles if all instances worked all the time."""
        return self.points / self.rate


def unit_work(problem: Problem, hardware: Hardware) -> Iterator[UnitWork]:
    """Yield the work of each operation."""
    for tile in walk_tiles(problem.root):
        if tile.is_leaf:
            level = hardware.level(tile.entries[0].destination)
            dims = leaf_dims(problem, tile.leaf)
            yield UnitWork(
                tile.leaf.operation,
                level.name,
                math.prod(problem.dims[dim] for dim in dims),
                throughput(level.unit, tile.leaf) * level.total_instances,
            )


def _utilization(works: Iterable[UnitWork], latency: float) -> dict[str, float]:
    result: dict[str, float] = {}
    for work in works if latency > 0 else ():
        share = work.cycles / latency
        result[work.unit] = result.get(work.unit, 0.0) + share
    return result
