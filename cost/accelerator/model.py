"""Prices one mapping, or many of one template, by the model of a name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator import ideal
from comet.cost.accelerator.capacity import fits, live_occupancy, summed_occupancy
from comet.cost.accelerator.flow import build_flows, tile_extents
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_structure, counts_fit
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper import model as paper
from comet.cost.accelerator.problem import Problem
from comet.cost.estimate import CostError, Estimate, ModelName
from comet.cost.reals import Real, Truth

ScalarT = TypeVar("ScalarT", np.float64, np.bool_)

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of `mallopt`, see its manual page: bytes."""

AT_ONCE = 16000
"""How many mappings are priced at once: their arrays fit reused memory."""


@dataclass(frozen=True)
class Prices:
    """The costs of many mappings of one template, one array element each."""

    latency: NDArray[np.float64]
    """Cycles."""
    energy: NDArray[np.float64]
    """pJ."""
    compulsory_stalls: NDArray[np.float64]
    optional_stalls: NDArray[np.float64]
    memory_window: NDArray[np.float64]
    """Cycles, see `Estimate`."""

    def estimate(self, index: int, model: ModelName) -> Estimate:
        """Return the cost of one mapping under `model`, without its nodes."""
        latency, energy, compulsory, optional, window = (
            float(figure[index]) for figure in self._figures
        )
        return Estimate(model, latency, energy, compulsory, optional, window)

    def at(self, chosen: NDArray[np.int64]) -> Prices:
        """Return the prices of the mappings at the indices `chosen`."""
        return Prices(*(figure[chosen] for figure in self._figures))

    @property
    def _figures(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


def price(problem: Problem, hardware: Hardware, model: ModelName = "paper") -> Estimate:
    """
    The cost of one mapping under one model.

    Raises `CostError` with one sentence if the mapping is illegal, does not fit, or the
    model cannot price it.
    """
    match model:
        case "tool":
            from comet.cost.accelerator.tool import model as tool

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

    Only the structure is checked, not extents and capacity: see `room_many`. Raises
    `CostError` as `price` does. The model `tool`, whose integer arithmetic has no array
    form, prices one mapping after the other; an illegal mapping has infinite cost.
    """
    if model == "tool":
        return _one_by_one(mappings, hardware)
    check_structure(mappings.template, hardware)
    keep_memory()
    chunks = list(mappings.chunks(AT_ONCE))
    priced = [figures_of(chunk, hardware, model) for chunk in chunks]
    figures = zip(*priced, strict=True)
    return Prices(
        *(
            _joined(chunks, [np.asarray(f, np.float64) for f in figure])
            for figure in figures
        )
    )


def figures_of(
    mappings: Mappings, hardware: Hardware, model: ModelName
) -> tuple[Real, ...]:
    """
    Return the figures of `Prices` for mappings whose structure was checked.

    `model` is not `tool`. A figure that is one number holds for all of them.
    """
    costs = paper.costs if model == "paper" else ideal.costs
    return costs(mappings, hardware, build_flows(mappings, hardware))


def room_many(mappings: Mappings, hardware: Hardware) -> NDArray[np.bool_]:
    """Which of many mappings of one template fit by the COMET tool's capacity rule."""
    chunks, room = list(mappings.chunks(AT_ONCE)), list[NDArray[np.bool_]]()
    for chunk in chunks:
        needs = summed_occupancy(chunk.template, tile_extents(chunk, hardware))
        room.append(np.asarray(fits(needs, hardware), np.bool_))
    return _joined(chunks, room)


def is_legal(mappings: Mappings, hardware: Hardware, *, live: bool) -> Truth:
    """
    Return which of many mappings of one legal template have legal factors.

    They fit by the COMET tool's capacity rule and its 32-bit counts, and with `live` by
    liveness, too. Extents and the stages of pipelines are not checked. One truth value
    holds for all mappings.
    """
    extents = tile_extents(mappings, hardware)
    legal = fits(summed_occupancy(mappings.template, extents), hardware)
    legal = legal & counts_fit(mappings, extents)
    if live:
        legal = legal & fits(live_occupancy(mappings.template, extents), hardware)
    return legal


def _joined(
    chunks: Sequence[Mappings], values: Sequence[NDArray[ScalarT]]
) -> NDArray[ScalarT]:
    """Concatenate the results of chunks, one element for each mapping."""
    spread = [
        np.broadcast_to(value, chunk.shape)
        for chunk, value in zip(chunks, values, strict=True)
    ]
    return spread[0] if len(spread) == 1 else np.concatenate(spread)


@cache
def keep_memory() -> None:
    """
    Let glibc keep freed memory: pages that it gets back from the system are cleared.

    Other C libraries have no `mallopt`, or ignore it.
    """
    library = CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, 1 << 25)
        library.mallopt(M_TRIM_THRESHOLD, 1 << 30)


def _one_by_one(mappings: Mappings, hardware: Hardware) -> Prices:
    figures = np.full((len(fields(Prices)), mappings.count), np.inf)
    for index in range(mappings.count):
        with suppress(CostError):
            found = price(mappings.at(index), hardware, "tool")
            figures[:, index] = [getattr(found, field.name) for field in fields(Prices)]
    return Prices(*figures)
