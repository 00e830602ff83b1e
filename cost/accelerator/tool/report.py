"""
The COMET tool's report: the stall table, total cycles, ideal cycles, utilization and
energy by level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from comet.cost.accelerator.compute import leaf_cycles, primitive_extents
from comet.cost.accelerator.problem import Collective, Leaf, Problem, Tile, walk_tiles
from comet.cost.accelerator.tool.energy import Energy
from comet.cost.accelerator.tool.state import GroupCost, Latency


@dataclass(frozen=True, slots=True)
class StallRow:
    """
    Stalls and work of one node for one group of children: a line of the breakdown.
    """

    node: int
    levels: tuple[str, ...]
    compulsory: int
    optional: int
    window: int
    """All three in cycles of one execution of the node."""
    runs: int
    is_leaf: bool = False
    operation: str | None = None


def stall_rows(latency: Latency, energy: Energy) -> tuple[StallRow, ...]:
    """The detailed breakdown, nodes in document order."""
    rows: list[StallRow] = []
    for node in latency.problem.nodes:
        runs = energy.runs.get(node.index, 1)
        if isinstance(node, Collective):
            rows.append(
                StallRow(
                    node.index,
                    (node.level,),
                    0,
                    latency.collectives[node.index].cycles,
                    0,
                    runs,
                )
            )
        elif isinstance(node, Tile) and (node.spatial or node.is_leaf):
            rows += [
                _row(latency, node, cost, runs)
                for cost in latency.groups.get(node.index, ())
            ]
    return tuple(rows)


def _row(latency: Latency, tile: Tile, cost: GroupCost, runs: int) -> StallRow:
    ports = cost.records.values()
    compulsory = sum(
        max((p[port].ramp_up + p[port].ramp_down for p in ports), default=0)
        for port in (0, 1)
    )
    window = max((record.compute for p in ports for record in p), default=0)
    optional = max(0, latency.cycles[tile.index] - compulsory - window)
    operation = tile.leaf.operation if tile.is_leaf else None
    return StallRow(
        tile.index,
        tuple(cost.records),
        compulsory,
        optional,
        window,
        runs,
        tile.is_leaf,
        operation,
    )


def total_cycles(rows: tuple[StallRow, ...]) -> int:
    """
    The tool's "Total Cycles": stalls of all nodes and work of the leaves. It is not the
    root's latency.
    """
    return sum(
        (r.compulsory + r.optional + (r.window if r.is_leaf else 0)) * r.runs
        for r in rows
    )


def stall_table(
    problem: Problem, rows: tuple[StallRow, ...]
) -> dict[str, dict[str, int]]:
    """
    The tool's table by unit: CS, OS and TMW in cycles, and their Total. OS of levels is
    per execution.
    """
    kinds = {n.index: n for n in problem.nodes}
    table: dict[str, dict[str, int]] = {}
    for row in rows:
        node = kinds[row.node]
        if isinstance(node, Collective):
            _add(
                table,
                f"{node.kind.upper()}-{node.index}",
                "OS",
                (row.compulsory + row.optional) * row.runs,
            )
            continue
        name = "".join(f"{level}-" for level in row.levels)
        _add(table, name, "CS", row.compulsory * row.runs)
        _add(table, name, "OS", row.optional)
        if row.operation is not None:
            table.setdefault(row.operation, {})["TMW"] = row.window * row.runs
    for cells in table.values():
        cells["Total"] = sum(cells.values())
    return dict(sorted(table.items()))


def _add(table: dict[str, dict[str, int]], name: str, column: str, value: int) -> None:
    cells = table.setdefault(name, {})
    cells[column] = cells.get(column, 0) + value


def leaf_units(problem: Problem) -> Mapping[str, tuple[Leaf, str]]:
    """The leaf and unit level of every operation."""
    return {
        t.leaf.operation: (t.leaf, t.entries[0].destination)
        for t in walk_tiles(problem.root)
        if t.is_leaf
    }


def ideal_cycles(latency: Latency) -> dict[str, int]:
    """
    Cycles of each operation if all instances of its unit worked all the time (COMET
    tool).
    """
    result: dict[str, int] = {}
    for name, (leaf, unit) in sorted(leaf_units(latency.problem).items()):
        level = latency.hardware.level(unit)
        extent = math.prod(
            latency.problem.dims[d] for d in latency.problem.operation[name].dims
        )
        primitives = extent // math.prod(primitive_extents(leaf))
        result[name] = (
            primitives * leaf_cycles(level.unit, leaf) // level.total_instances
        )
    return result


def utilization(latency: Latency, ideal: Mapping[str, int]) -> dict[str, float]:
    """Ideal cycles over the root's latency, by unit level, single precision."""
    units = leaf_units(latency.problem)
    total = np.float32(latency.cycles[latency.problem.root.index])
    result: dict[str, float] = {}
    for name, cycles in ideal.items():
        unit = units[name][1]
        result[unit] = float(
            np.float32(result.get(unit, 0.0)) + np.float32(cycles) / total
        )
    return dict(sorted(result.items()))


@dataclass(frozen=True)
class EnergyReport:
    """Energies summed over nodes, in pJ."""

    total: float
    by_level: Mapping[str, float]
    """By level, by unit and operation, by network and collective kind."""


def energy_report(
    latency: Latency, energy: Energy, *, network: bool = True
) -> EnergyReport:
    """
    The energy by level, added up in the tool's order and precision; `network` includes
    the networks.
    """
    rank = latency.hardware.rank
    by_level: dict[str, np.float32] = {}
    total = 0.0
    for node in latency.problem.nodes:
        suffix = (
            f"-{node.leaf.operation}" if isinstance(node, Tile) and node.is_leaf else ""
        )
        memory = energy.memory.get(node.index, {})
        for level in sorted(memory, key=lambda name: rank[name]):
            name = level + (suffix if latency.hardware.level(level).is_unit else "")
            by_level[name] = np.float32(float(by_level.get(name, 0)) + memory[level])
            total += memory[level]
        if network:
            kind = f"-{node.kind.upper()}" if isinstance(node, Collective) else ""
            for name, value in sorted(energy.network.get(node.index, {}).items()):
                by_level[name + kind] = np.float32(
                    float(by_level.get(name + kind, 0)) + value
                )
                total += value
    return EnergyReport(
        total, {name: float(value) for name, value in sorted(by_level.items())}
    )
