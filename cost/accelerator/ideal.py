"""
The model `ideal`: perfect overlap, for comparison with Timeloop and AccelForge.

Every memory moves the bytes of an operation at its bandwidth, every unit works without
fill and drain, nothing waits, and networks and collectives cost nothing. An operation
takes as long as its slowest component, and operations run one after the other. The root
memory reads and writes over one bus; every other memory has one port for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from comet.cost.accelerator.compute import ideal_cycles
from comet.cost.accelerator.flow import Flow, Flows, build_flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.energy import Energy, energies
from comet.cost.accelerator.problem import Problem, Tile
from comet.cost.accelerator.visits import Visit, visits
from comet.cost.estimate import Estimate
from comet.cost.reals import Real, add_to, larger, longest, total

Component: TypeAlias = tuple[str, str]
"""A level, and the part of it that is busy: bus, read, write or work."""


def price(problem: Problem, hardware: Hardware) -> Estimate:
    """The cost of one mapping; raises `CostError` if it is illegal."""
    check(problem, hardware)
    mappings = Mappings(problem)
    cost = ideal_cost(mappings, hardware, build_flows(mappings, hardware))
    by_level = cost.spent.by_level
    latency, energy, compulsory, optional, window = map(float, cost.figures)
    return Estimate(
        "ideal",
        latency,
        energy,
        compulsory,
        optional,
        window,
        (),
        {name: float(by_level[name]) for name in sorted(by_level)},
    )


def costs(mappings: Mappings, hardware: Hardware, flows: Flows) -> tuple[Real, ...]:
    """The costs of mappings whose flows are known, in the order of `Prices`."""
    return ideal_cost(mappings, hardware, flows).figures


@dataclass
class IdealCost:
    """The ideal cost of mappings."""

    spent: Energy
    """The energy; networks spend none."""
    busy: dict[str, dict[Component, Real]] = field(
        default_factory=dict[str, dict[Component, Real]]
    )
    """Cycles by operation and component."""

    @property
    def latency(self) -> Real:
        """Cycles: operations in turn, each as long as its slowest component."""
        return total(_longest(components) for components in self.busy.values())

    @property
    def work(self) -> Real:
        """Cycles that units compute."""
        return total(
            cycles
            for components in self.busy.values()
            for (_, what), cycles in components.items()
            if what == "work"
        )

    @property
    def figures(self) -> tuple[Real, Real, Real, Real, Real]:
        """Latency, energy, compulsory and optional stalls, and the memory window."""
        latency, work = self.latency, self.work
        return latency, self.spent.total, 0.0, larger(0.0, latency - work), work

    @property
    def bound(self) -> Real:
        """
        A lower bound in cycles for any schedule of these transfers: the busiest
        component.
        """
        return _longest(self.total_busy)

    @property
    def total_busy(self) -> dict[Component, Real]:
        """Cycles by component, all operations together."""
        sums: dict[Component, Real] = {}
        for components in self.busy.values():
            for component, cycles in components.items():
                add_to(sums, component, cycles)
        return sums


def ideal_cost(mappings: Mappings, hardware: Hardware, flows: Flows) -> IdealCost:
    """The ideal cost of mappings whose flows are known."""
    found = tuple(visits(mappings, flows))
    cost = IdealCost(energies(mappings, hardware, flows, found, networks=False))
    for visit in found:
        for flow, moved in zip(visit.flows, visit.moved, strict=True):
            _move(cost, hardware, flow, moved)
        if isinstance(visit.node, Tile) and visit.node.is_leaf:
            _work(cost, mappings, hardware, visit.node, visit)
    return cost


def _longest(components: dict[Component, Real]) -> Real:
    return longest(components.values())


def _add(cost: IdealCost, tag: str, component: Component, cycles: Real) -> None:
    add_to(cost.busy.setdefault(tag, {}), component, cycles)


def _move(cost: IdealCost, hardware: Hardware, flow: Flow, moved: Real) -> None:
    """Add the cycles of a flow at both ends; at the source each tile counts once."""
    entry = flow.entry
    memory = hardware.level(entry.source).memory
    near = memory.child_write_bandwidth if flow.writes else memory.child_read_bandwidth
    way = "write" if flow.writes else "read"
    if entry.source == hardware.levels[0].name:
        way = "bus"
    _add(cost, entry.tag, (entry.source, way), moved * (flow.unique / near))
    destination = hardware.level(entry.destination)
    if destination.is_unit:
        return
    memory = destination.memory
    far = memory.parent_read_bandwidth if flow.writes else memory.parent_write_bandwidth
    way = "read" if flow.writes else "write"
    _add(cost, entry.tag, (entry.destination, way), moved * (1 / far))


def _work(
    cost: IdealCost,
    mappings: Mappings,
    hardware: Hardware,
    tile: Tile,
    visit: Visit,
) -> None:
    unit = hardware.level(tile.entries[0].destination)
    count = visit.runs * visit.iterations * leaf_steps(mappings, tile.leaf)
    cycles = count * ideal_cycles(unit.unit, tile.leaf, mappings)
    _add(cost, tile.leaf.operation, (unit.name, "work"), cycles)
