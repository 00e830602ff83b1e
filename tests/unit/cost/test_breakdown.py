"""The parts of a price add up to it, on recorded mappings of every kind."""

from collections import defaultdict
from typing import Any

import pytest
from recorded_runs import RUNS, parsed

from comet.cost.accelerator.breakdown import (
    EXPOSED,
    HIDDEN,
    NETWORK,
    OVERLAP,
    Breakdown,
    breakdown,
)
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import walk_tiles
from comet.cost.accelerator.scaling import gains, resources
from comet.cost.estimate import CostError, ModelName

SOME = RUNS[::9]
MODELS: tuple[ModelName, ...] = ("paper", "ideal")


def priced(run: dict[str, Any], model: ModelName) -> tuple[float, float, Breakdown]:
    """Latency, energy, and their parts; skips what the model refuses."""
    problem, hardware = parsed(run)
    try:
        estimate = price(problem, hardware, model)
    except CostError as error:
        pytest.skip(str(error))
    return estimate.latency, estimate.energy, breakdown(problem, hardware, model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("run", SOME, ids=lambda run: run["id"])
def test_parts_add_up(run: dict[str, Any], model: ModelName) -> None:
    """Terms are the latency; tensors, operations and levels are the energy."""
    latency, energy, parts = priced(run, model)
    assert sum(term.cycles for term in parts.terms) == pytest.approx(latency)
    spent = sum(sum(row.values()) for row in parts.energy.values())
    assert spent == pytest.approx(energy)


@pytest.mark.parametrize("run", SOME, ids=lambda run: run["id"])
def test_bytes_spend_the_energy_of_their_level(run: dict[str, Any]) -> None:
    """Counted bytes, times the energy of a byte, are what the model says."""
    _, _, parts = priced(run, "paper")
    by_level = defaultdict[str, float](float)
    for one in parts.traffic:
        by_level[one.level] += one.energy
    for level, spent in by_level.items():
        assert spent == pytest.approx(sum(parts.energy[level].values()))


@pytest.mark.parametrize("run", SOME, ids=lambda run: run["id"])
def test_terms_are_not_negative(run: dict[str, Any]) -> None:
    """Only what overlaps is, and only where nodes are bound to overlap."""
    _, _, parts = priced(run, "paper")
    terms = {term.name: term.cycles for term in parts.terms}
    overlap = terms.pop(OVERLAP)
    if overlap == pytest.approx(0.0, abs=1e-6 * sum(terms.values())):
        assert min(terms.values()) >= -1e-6
    else:
        kinds = [b for tile in walk_tiles(parsed(run)[0].root) for b in tile.bindings]
        assert any(kinds)
    assert terms[EXPOSED] >= 0
    assert terms[NETWORK] >= 0
    assert terms[HIDDEN] >= -1e-6


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("run", SOME[::3], ids=lambda run: run["id"])
def test_more_of_a_resource_is_not_slower(
    run: dict[str, Any], model: ModelName
) -> None:
    latency, _, _ = priced(run, model)
    problem, hardware = parsed(run)
    found = gains(problem, hardware, model, 1.1)
    assert [gain.resource for gain in found] == list(resources(hardware))
    for gain in found:
        assert latency / 1.1 - 1e-6 <= gain.latency <= latency + 1e-6
    assert min(gain.latency for gain in found) < latency


def test_one_times_a_resource_is_the_same_machine() -> None:
    hardware = parsed(RUNS[0])[1]
    for scaled in resources(hardware).values():
        assert scaled(1.0) == hardware
        assert scaled(2.0) != hardware
