"""The figures of one mapping by the cost models, as data with units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from comet.codegen.chrome_trace import Slice
from comet.cost.accelerator.breakdown import Breakdown, Traffic, breakdown
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import Collective, Leaf, Problem, Tile
from comet.cost.accelerator.report import unit_work
from comet.cost.accelerator.scaling import Gain, gains
from comet.cost.estimate import Estimate, ModelName
from comet.cost.from_ir.mapping import problem_of, system_hardware
from comet.dialects.comet import MappingOp
from comet.report.mapping_timeline import timeline
from comet.report.numbers import MORE, Mark, Roof, Roofline, Room, percent
from comet.tools.mapping_table import MappingRow, mapping_rows

T = TypeVar("T")


@dataclass(frozen=True)
class TreeNode:
    """One node of the tile tree."""

    index: int
    kind: str
    """tile, collective or operation."""
    row: MappingRow
    cycles: float
    """All executions, one after the other, children included; 0 for an operation."""
    executions: float
    children: tuple[TreeNode, ...]


@dataclass(frozen=True)
class MappingFigures:
    """The figures of one mapping in a report."""

    model: ModelName
    latency: float
    """Cycles."""
    energy: float
    """pJ."""
    parts: Breakdown
    rooms: tuple[Room, ...]
    roofline: Roofline
    gains: tuple[Gain, ...]
    tree: TreeNode
    slices: tuple[Slice, ...]

    @property
    def edp(self) -> float:
        """The product of energy and latency, in pJ x cycles."""
        return self.energy * self.latency

    @property
    def energy_by_level(self) -> dict[str, float]:
        """The pJ of each level, unit and network."""
        return {name: sum(row.values()) for name, row in self.parts.energy.items()}

    @property
    def traffic_by_level(self) -> dict[str, tuple[Traffic, ...]]:
        """The traffic of each memory level, in the order of levels."""
        return grouped(
            self.parts.traffic, [traffic.level for traffic in self.parts.traffic]
        )

    @property
    def bottleneck(self) -> str:
        """A sentence on the largest term, the busiest component, and the best gain."""
        term = max(self.parts.terms, key=lambda term: term.cycles)
        (level, what), busy = max(self.parts.busy.items(), key=lambda item: item[1])
        gain = min(self.gains, key=lambda gain: gain.latency)
        return (
            f"The largest part of the latency is {term.name} "
            f"({percent(term.cycles, self.latency)}); the busiest component, "
            f"{level} ({what}), needs {percent(busy, self.latency)} of the time; what "
            f"helps most is the {gain.resource}: 10 % more saves "
            f"{percent(self.latency - gain.latency, self.latency)}."
        )


def grouped(items: Sequence[T], keys: Sequence[str]) -> dict[str, tuple[T, ...]]:
    """Return the items by key, in the order of their first item."""
    pairs = list(zip(keys, items, strict=True))
    return {key: tuple(i for k, i in pairs if k == key) for key in dict.fromkeys(keys)}


def figures_of(module: ModuleOp, model: ModelName) -> MappingFigures:
    """
    Return the figures of the mapping in a module at the level `comet`.

    Raises CostError if there is none, or if the model cannot price it.
    """
    problem, hardware = problem_of(module), system_hardware(module)
    estimate = price(problem, hardware, model)
    parts = breakdown(problem, hardware, model)
    rows = _rows(module, problem)
    return MappingFigures(
        model,
        estimate.latency,
        estimate.energy,
        parts,
        tuple(_rooms(parts, hardware)),
        _roofline(problem, hardware, estimate, parts),
        gains(problem, hardware, model, MORE),
        _tree(problem, estimate, rows),
        timeline(problem, hardware, model, {i: _name(row) for i, row in rows.items()}),
    )


def _rows(module: ModuleOp, problem: Problem) -> dict[int, MappingRow]:
    """Return the description of each node of the mapping, by node index."""
    mapping = next(op for op in module.ops if isinstance(op, MappingOp))
    nodes, rows = problem.nodes, mapping_rows(mapping.root)
    return {node.index: row for node, row in zip(nodes, rows, strict=True)}


def _name(row: MappingRow) -> str:
    """Return the short name of a node: levels and factors, or operation and tensors."""
    kind, where, factors, what, _ = row.cells
    if kind in ("temporal", "spatial"):
        return f"{where} {factors}"
    return f"{kind} {what}"


_KINDS = {Tile: "tile", Collective: "collective", Leaf: "operation"}


def _tree(
    problem: Problem, estimate: Estimate, rows: Mapping[int, MappingRow]
) -> TreeNode:
    """Return the tile tree; nodes have no cycles under `ideal`."""
    costs = {node.index: node for node in estimate.nodes}

    def tree_node(index: int) -> TreeNode:
        node, cost = by_index[index], costs.get(index)
        children = node.children if isinstance(node, Tile) else ()
        runs = 0.0 if cost is None else cost.executions
        cycles = 0.0 if cost is None else cost.cycles * runs
        below = tuple(tree_node(child.index) for child in children)
        return TreeNode(index, _KINDS[type(node)], rows[index], cycles, runs, below)

    by_index = {node.index: node for node in problem.nodes}
    return tree_node(problem.root.index)


def _rooms(parts: Breakdown, hardware: Hardware) -> Iterator[Room]:
    for demand in parts.occupancy:
        sizes = {tensor: float(size) for tensor, size in demand.tiles.items() if size}
        yield Room(demand.level, hardware.level(demand.level).memory.capacity, sizes)


def _roofline(
    problem: Problem, hardware: Hardware, estimate: Estimate, parts: Breakdown
) -> Roofline:
    """Return the roofline of the unit whose iteration spaces are the largest."""
    all_works = tuple(unit_work(problem, hardware))
    by_unit = grouped(all_works, [work.unit for work in all_works])
    unit, works = max(by_unit.items(), key=lambda item: sum(w.points for w in item[1]))
    operations = sum(work.points for work in works)
    roofs: list[Roof] = []
    for name, traffic in grouped(
        parts.traffic, [entry.level for entry in parts.traffic]
    ).items():
        level = hardware.level(name)
        rate = level.memory.child_read_bandwidth * level.total_instances
        moved = sum(entry.read + entry.written for entry in traffic)
        mark = Mark("", operations / moved, operations / estimate.latency)
        roofs.append(Roof(name, rate, (mark,)))
    busy = sum(work.cycles for work in works)
    peak = operations / busy if busy else inf
    return Roofline(unit, "cycle", peak, tuple(roofs))
