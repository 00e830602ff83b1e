"""The models by name: one call prices one mapping, or many of one template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost import ideal
from comet.cost.capacity import fits, fits_tool
from comet.cost.estimate import CostError, Estimate, ModelName
from comet.cost.flow import Flows, build_flows
from comet.cost.hardware import Hardware
from comet.cost.legality import check_structure
from comet.cost.mappings import Mappings
from comet.cost.paper import model as paper
from comet.cost.problem import Problem
from comet.cost.reals import Real
from comet.cost.tool import model as tool

Costs: TypeAlias = Callable[[Mappings, Hardware, Flows], tuple[Real, Real]]
"""Latency (cycles) and energy (pJ) of mappings whose flows are known."""

AT_ONCE = 16000
"""Mappings whose arrays stay within the memory that is kept (see `_keep_memory`)."""


@dataclass(frozen=True)
class Prices:
    """What many mappings of one template cost, one array element each."""

    latency: NDArray[np.float64]
    """Cycles."""
    energy: NDArray[np.float64]
    """pJ."""
    fits: NDArray[np.bool_]
    """Whether every level holds what is alive in it."""
    fits_tool: NDArray[np.bool_]
    """Whether the COMET tool's own sums leave room at every level."""


def price(problem: Problem, hardware: Hardware, model: ModelName = "paper") -> Estimate:
    """
    The cost of one mapping under one model.

    Raises `CostError` with one sentence where the mapping is illegal, does not fit, or
    the model has no answer.
    """
    match model:
        case "tool":
            return tool.price(problem, hardware)
        case "paper":
            return paper.price(problem, hardware)
        case "ideal":
            return ideal.price(problem, hardware)


def price_many(
    mappings: Mappings, hardware: Hardware, model: ModelName = "paper"
) -> Prices:
    """
    The costs of many mappings of one legal template.

    Only the structure is checked; extents and capacity are for the caller, who finds
    the latter in `Prices.fits`. Raises `CostError` as `price` does. Model `tool`, whose
    integer arithmetic has no array form, prices one mapping after the other; what it
    rejects costs infinitely much and does not fit.
    """
    if model == "tool":
        return _one_by_one(mappings, hardware)
    check_structure(mappings.template, hardware)
    _keep_memory()
    costs = paper.costs if model == "paper" else ideal.costs
    parts = [_at_once(part, hardware, costs) for part in mappings.parts(AT_ONCE)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _at_once(mappings: Mappings, hardware: Hardware, costs: Costs) -> Prices:
    flows = build_flows(mappings, hardware)
    cycles, energy = costs(mappings, hardware, flows)
    room = fits(mappings, hardware, flows.tiles)
    tool_room = fits_tool(mappings, hardware, flows.tiles)
    return Prices(*np.broadcast_arrays(cycles, energy, room, tool_room))


def _joined(parts: Sequence[Prices]) -> Prices:
    return Prices(
        np.concatenate([part.latency for part in parts]),
        np.concatenate([part.energy for part in parts]),
        np.concatenate([part.fits for part in parts]),
        np.concatenate([part.fits_tool for part in parts]),
    )


@cache
def _keep_memory() -> None:
    """
    Let the C library keep freed memory: it is cleared anew whenever it comes back.

    Freeing a large block makes glibc keep twice as much; elsewhere nothing happens.
    """
    np.empty(31 << 20, np.uint8)


def _one_by_one(mappings: Mappings, hardware: Hardware) -> Prices:
    count = mappings.count
    latency, energy = np.full(count, np.inf), np.full(count, np.inf)
    for index in range(count):
        try:
            estimate = tool.price(mappings.at(index), hardware)
        except CostError:
            continue
        latency[index], energy[index] = estimate.latency, estimate.energy
    legal = np.isfinite(latency)
    return Prices(latency, energy, legal, legal)
