"""Prices a mapping on machines that have more of one resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from comet.cost.accelerator.hardware import Hardware, Level, Network
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.model import price_many
from comet.cost.accelerator.problem import Problem
from comet.cost.estimate import ModelName

Scaled: TypeAlias = Callable[[float], Hardware]
"""Returns the machine on which one resource is multiplied by the argument."""


@dataclass(frozen=True)
class Gain:
    """The latency of a mapping with more of one resource."""

    resource: str
    latency: float
    """Cycles of the same mapping."""


def gains(
    problem: Problem, hardware: Hardware, model: ModelName, factor: float
) -> tuple[Gain, ...]:
    """
    Price one mapping with `factor` times as much of each resource, one at a time.

    Capacities are left out, as the same tiles do not use more. Under `ideal` networks
    cost nothing.
    """
    mappings = Mappings(problem)
    return tuple(
        Gain(name, float(price_many(mappings, scaled(factor), model).latency))
        for name, scaled in resources(hardware).items()
    )


def resources(hardware: Hardware) -> Mapping[str, Scaled]:
    """The resources of a machine by name: bandwidths, links, networks and units."""
    return dict(_resources(hardware))


def _resources(hardware: Hardware) -> Iterator[tuple[str, Scaled]]:
    for level in hardware.levels:
        if level.is_unit:
            yield f"clock of {level.name}", partial(_with, hardware, level, _quicker)
        else:
            yield f"bandwidth of {level.name}", partial(_with, hardware, level, _wider)
        if (link := level.link) is not None:
            linked = partial(_linked, link)
            yield f"links among {level.name}", partial(_with, hardware, level, linked)
        if level.parent is not None:
            network = partial(_with_network, hardware, level.name)
            yield f"network to {level.name}", network


def _quicker(level: Level, factor: float) -> Level:
    """The unit with `factor` times the clock."""
    unit = level.unit
    return replace(level, kind=replace(unit, rate=unit.rate * factor))


def _wider(level: Level, factor: float) -> Level:
    """The memory with `factor` times the bandwidth to its parent and its children."""
    memory = level.memory
    wider = replace(
        memory,
        parent_read_bandwidth=memory.parent_read_bandwidth * factor,
        parent_write_bandwidth=memory.parent_write_bandwidth * factor,
        child_read_bandwidth=memory.child_read_bandwidth * factor,
        child_write_bandwidth=memory.child_write_bandwidth * factor,
    )
    return replace(level, kind=wider)


def _linked(link: Network, level: Level, factor: float) -> Level:
    """The memory whose instances exchange data `factor` times as fast over `link`."""
    memory = level.memory
    wider = replace(
        memory,
        link_read_bandwidth=memory.link_read_bandwidth * factor,
        link_write_bandwidth=memory.link_write_bandwidth * factor,
    )
    return replace(level, kind=wider, link=_faster(link, factor))


def _faster(network: Network, factor: float) -> Network:
    return replace(
        network,
        bandwidth=network.bandwidth * factor,
        hop_latency=network.hop_latency / factor,
        queuing_delay=network.queuing_delay / factor,
    )


def _with(
    hardware: Hardware,
    level: Level,
    change: Callable[[Level, float], Level],
    factor: float,
) -> Hardware:
    changed = change(level, factor)
    levels = (
        changed if original is level else original for original in hardware.levels
    )
    return replace(hardware, levels=tuple(levels))


def _with_network(hardware: Hardware, child: str, factor: float) -> Hardware:
    """The machine with faster networks from a level's parents to the level."""
    networks = {
        ends: _faster(network, factor) if ends[1] == child else network
        for ends, network in hardware.networks.items()
    }
    return replace(hardware, networks=networks)
