"""What must hold of any price, on recorded runs; many prices are those of each one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from covering import EVERY_CASE, one_of
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import RUNS, parsed, recorded

from comet.cost.accelerator.flow import build_flows
from comet.cost.accelerator.hardware import Hardware, Memory, Network
from comet.cost.accelerator.ideal import ideal_cost
from comet.cost.accelerator.mappings import FactorKey, Mappings
from comet.cost.accelerator.model import price, price_many, room_many
from comet.cost.accelerator.problem import Problem, walk_tiles
from comet.cost.accelerator.visits import visits
from comet.cost.accelerator.volume import elements_of


def half_of_the_runs(first: int) -> pytest.MarkDecorator:
    """Every other run, from the first or the second; `make exhaustive` has all."""
    some = RUNS if EVERY_CASE else RUNS[first::2]
    return pytest.mark.parametrize("run", some, ids=lambda run: run["id"])


runs = st.sampled_from(RUNS)


def test_total_cycles_are_the_latency() -> None:
    for run in RUNS[::5]:
        estimate = price(*parsed(run))
        parts = estimate.memory_window + estimate.compulsory_stalls
        assert parts + estimate.optional_stalls == pytest.approx(estimate.latency)


def dram_cycles(problem: Problem, hardware: Hardware) -> float:
    """The cycles that the root memory needs for what enters and leaves it."""
    flows = build_flows(Mappings(problem), hardware)
    return float(ideal_cost(Mappings(problem), hardware, flows).bound)


@one_of(3)
@half_of_the_runs(0)
def test_never_below_the_roofline(run: Mapping[str, Any]) -> None:
    problem, hardware = parsed(run)
    latency = price(problem, hardware).latency
    assert latency >= dram_cycles(problem, hardware) * (1 - 1e-9)
    moved = 0.0
    for tensor in {*problem.inputs, *problem.outputs}:
        op = next(op for op in problem.operations if tensor in op.access)
        sizes = [problem.dims[d] for axis in op.access[tensor].projection for d in axis]
        bits = [e.bits for e in problem.root.entries if e.tensor == tensor]
        moved += float(np.prod(sizes)) * (min(bits) / 8 if bits else 0)
    assert latency >= moved / hardware.levels[0].memory.child_read_bandwidth


factors = st.integers(1, 4)


@settings(max_examples=300 if EVERY_CASE else 40)
@given(run=runs, data=st.data())
def test_better_hardware_is_never_slower(run: Mapping[str, Any], data: Any) -> None:
    problem, hardware = parsed(run)

    def network(n: Network) -> Network:
        return replace(
            n,
            bandwidth=n.bandwidth * data.draw(factors),
            hop_latency=n.hop_latency // data.draw(factors),
            queuing_delay=n.queuing_delay // data.draw(factors),
        )

    def memory(m: Memory) -> Memory:
        return replace(
            m,
            ports=m.ports * data.draw(factors),
            child_read_bandwidth=m.child_read_bandwidth * data.draw(factors),
            child_write_bandwidth=m.child_write_bandwidth * data.draw(factors),
            parent_read_bandwidth=m.parent_read_bandwidth * data.draw(factors),
            parent_write_bandwidth=m.parent_write_bandwidth * data.draw(factors),
            link_read_bandwidth=m.link_read_bandwidth * data.draw(factors),
            link_write_bandwidth=m.link_write_bandwidth * data.draw(factors),
        )

    levels = tuple(
        replace(
            lv,
            kind=memory(lv.kind) if isinstance(lv.kind, Memory) else lv.kind,
            link=None if lv.link is None else network(lv.link),
        )
        for lv in hardware.levels
    )
    better = Hardware(levels, {k: network(n) for k, n in hardware.networks.items()})
    before = price(problem, hardware).latency
    assert price(problem, better).latency <= before * (1 + 1e-9)


@one_of(2)
@half_of_the_runs(1)
def test_energy_is_not_negative_and_adds_up(run: Mapping[str, Any]) -> None:
    estimate = price(*parsed(run))
    assert all(value >= 0 for value in estimate.energy_by_level.values())
    assert sum(estimate.energy_by_level.values()) == pytest.approx(estimate.energy)


@half_of_the_runs(0)
def test_bytes_are_conserved_between_levels(run: Mapping[str, Any]) -> None:
    problem, hardware = parsed(run)
    mappings = Mappings(problem)
    flows = build_flows(mappings, hardware)
    crossed: dict[str, float] = {}
    for visit in visits(mappings, flows):
        for flow in visit.flows:
            assert 1 <= flow.unique <= flow.spatial
            assert 1 <= flow.moves <= flow.iterations
            # What all instances get is what leaves, once per instance that shares it.
            times = float(visit.runs * visit.copies * flow.moves)
            leaves = times * float(flow.unique * flow.size)
            arrives = times * float(flow.spatial * flow.size)
            assert arrives == pytest.approx(leaves * flow.spatial / flow.unique)
            if flow.entry.source == problem.root.entries[0].source:
                tensor = flow.entry.tensor
                crossed[tensor] = crossed.get(tensor, 0.0) + leaves
    for tensor in {*problem.inputs, *problem.outputs} & crossed.keys():
        op = next(op for op in problem.operations if tensor in op.access)
        whole = elements_of(op.access[tensor].projection, problem.dims)
        assert crossed[tensor] >= whole * (1 - 1e-9), tensor


@settings(max_examples=100 if EVERY_CASE else 15)
@given(run=runs, seed=st.integers(0, 99))
def test_many_prices_equal_single_prices(run: Mapping[str, Any], seed: int) -> None:
    problem, hardware = parsed(run)
    generator = np.random.default_rng(seed)
    arrays: dict[FactorKey, Any] = {}
    for tile in walk_tiles(problem.root):
        shared: dict[str, Any] = {}
        for place, entry in enumerate(tile.entries):
            for dim, factor in entry.factors[0].items():
                if dim not in shared:
                    shared[dim] = 2.0 ** generator.integers(0, 3, 4)
                arrays[tile.index, place, 0, dim] = factor * shared[dim]
    for model in ("paper", "ideal"):
        many = price_many(Mappings(problem, arrays), hardware, model)
        for k in range(4):
            one = {key: value[k : k + 1] for key, value in arrays.items()}
            alone = price_many(Mappings(problem, one), hardware, model)
            assert alone.latency[0] == pytest.approx(many.latency[k])
            assert alone.energy[0] == pytest.approx(many.energy[k])
    template = price_many(Mappings(problem), hardware, "paper")
    single = price(problem, hardware)
    assert float(template.latency) == pytest.approx(single.latency)
    assert float(template.energy) == pytest.approx(single.energy)
    assert bool(room_many(Mappings(problem), hardware))


@pytest.mark.parametrize("at_once", [1, 3, 4, 7])
def test_prices_do_not_depend_on_how_many_are_computed_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, hardware = parsed(RUNS[0])
    shared = 2.0 ** np.arange(7)
    arrays: dict[FactorKey, Any] = {
        (tile.index, place, 0, dim): shared
        for tile in walk_tiles(problem.root)
        for place, entry in enumerate(tile.entries)
        for dim in entry.factors[0]
    }
    whole = price_many(Mappings(problem, arrays), hardware)
    whole_room = room_many(Mappings(problem, arrays), hardware)
    monkeypatch.setattr("comet.cost.accelerator.model.AT_ONCE", at_once)
    parts = price_many(Mappings(problem, arrays), hardware)
    room = room_many(Mappings(problem, arrays), hardware)
    assert whole.latency.tolist() == parts.latency.tolist()
    assert whole.energy.tolist() == parts.energy.tolist()
    assert whole_room.tolist() == room.tolist()


def test_many_prices_of_the_tool_come_one_by_one() -> None:
    problem, hardware = recorded("gemm")
    root = problem.root
    arrays: dict[FactorKey, Any] = {
        (root.index, place, 0, dim): np.array([float(factor), factor * 3.0])
        for place, entry in enumerate(root.entries)
        for dim, factor in entry.factors[0].items()
    }
    prices = price_many(Mappings(problem, arrays), hardware, "tool")
    alone = price(problem, hardware, "tool")
    assert prices.latency.tolist() == [alone.latency, np.inf]
    assert prices.energy[0] == alone.energy
