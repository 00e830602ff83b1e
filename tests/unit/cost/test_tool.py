"""The model `tool` gives what the COMET tool reported, run by run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from recorded_runs import REJECTED, RUNS, parsed

from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import walk_tiles
from comet.cost.accelerator.report import report
from comet.cost.accelerator.tool.energy import energies
from comet.cost.accelerator.tool.latency import latencies
from comet.cost.accelerator.tool.nest import build_nests
from comet.cost.accelerator.tool.state import node_cycles
from comet.cost.estimate import CostError
from comet.yaml_file import FileFormatError

REASONS = {
    "softmax-gather": "do not fit OB: C (131072 bytes), H (131072 bytes) need 262144",
    "attention-part": "do not fit WB: B (32768 bytes), V (1024 bytes) need 33792 bytes",
    "pipeline-gather": "need 133120 bytes together",
    "reject-dim-mismatch": "cover 256 of dimension N, whose extent is 512",
    "reject-capacity": "do not fit GB",
    "reject-mesh3x3": "no hop count for a 3x3 mesh",
    "reject-unknown-level": "no level 'XX'; it has DRAM, GB, OB",
    "reject-unknown-tensor": "lacks the field 'Q'",
    "reject-no-factors": "lacks the field",
    "reject-no-link": "set link_transfers: true",
    "reject-col-input-not-produced": "no tile to its left lists it",
    "reject-unknown-op-type": "'gelu'",
    "reject-parallel-spatial": "by parallel only",
    "reject-sharing-spatial": "by sharing only",
    "reject-missing-T": "lacks the field 'reduction_factors'",
    "reject-T-not-in-primitive": "has no extent 7",
}
"""What the sentence about each kind of rejected input must say."""

runs = pytest.mark.parametrize("run", RUNS, ids=lambda r: f"{r['family']}-{r['id']}")


def digits(value: float, count: int = 6) -> float:
    """A number as it prints with so many significant digits."""
    return float(f"{value:.{count - 1}e}")


@runs
def test_cycles_of_every_node(run: Mapping[str, Any]) -> None:
    latency = latencies(*parsed(run))
    assert node_cycles(latency) == run["result"]["nodes"]
    assert latency.cycles[0] == run["result"]["root_cycles"]


@runs
def test_report(run: Mapping[str, Any]) -> None:
    expected = run["result"]
    network = run["network_energy"]
    figures = report(*parsed(run), "tool", network_energy=network)
    got = figures.keys
    assert got["root_cycles"] == expected["root_cycles"]
    assert got["total_cycles"] == expected["total_cycles"]
    assert got["table"] == expected["table"]
    assert got["ideal_cycles"] == expected["ideal"]
    assert digits(float(str(got["total_energy_pj"])), 7) == expected["total_energy"]
    by_level = {k: f"{v:.2f}" for k, v in figures.energy_by_level.items()}
    levels = {k: f"{v:.2f}" for k, v in expected["energy_by_level"].items()}
    assert by_level | {"Total": levels["Total"]} == levels
    rounded = {k: round(v, 2) for k, v in figures.utilization.items()}
    total = sum(figures.utilization.values())
    printed = {**rounded, "Total": round(total, 2)}
    assert printed == pytest.approx(expected["utilization"], abs=1e-6)


@runs
def test_energy_of_every_node(run: Mapping[str, Any]) -> None:
    problem, hardware = parsed(run)
    energy = energies(latencies(problem, hardware))
    names = {node.index: node.name for node in problem.nodes}
    memory = {
        names[i]: {k: digits(v) for k, v in spent.items()}
        for i, spent in energy.memory.items()
    }
    assert memory == run["result"]["energy_tree"]
    if run["network_energy"]:
        network = {
            names[i]: {k: digits(v) for k, v in spent.items()}
            for i, spent in energy.network.items()
            if spent
        }
        assert network == run["result"]["noc_tree"]


@runs
def test_estimate_agrees_with_the_report(run: Mapping[str, Any]) -> None:
    estimate = price(*parsed(run), "tool")
    assert estimate.latency == run["result"]["root_cycles"]
    assert estimate.energy > 0
    assert {n.name: n.cycles for n in estimate.nodes} == run["result"]["nodes"]


@pytest.mark.parametrize("run", REJECTED, ids=lambda r: r["family"])
def test_rejected_inputs_say_why(run: Mapping[str, Any]) -> None:
    with pytest.raises((CostError, FileFormatError)) as raised:
        price(*parsed(run), "tool")
    assert REASONS[run["family"]] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_levels_stand_in_another_order_after_a_large_mapping() -> None:
    large = next(r for r in RUNS if r["family"] == "softmax-unfusedall")
    small = next(r for r in RUNS if r["family"] == "softmax-unfused2")
    for run, first in ((large, "GEMMEngine"), (small, "DRAM")):
        assert latencies(*parsed(run)).hardware.levels[0].name == first


def test_more_iterations_than_are_priced_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, hardware = parsed(RUNS[0])
    nests = latencies(problem, hardware).nests
    tiles = [t for t in walk_tiles(problem.root) if t.spatial or t.is_leaf]
    total = sum(nests.iterations(tile) for tile in tiles)
    monkeypatch.setattr("comet.cost.accelerator.tool.latency.MOST_ITERATIONS", total)
    price(problem, hardware, "tool")
    limit = total - 1
    monkeypatch.setattr("comet.cost.accelerator.tool.latency.MOST_ITERATIONS", limit)
    with pytest.raises(CostError, match=f"make {total} iterations together, and the"):
        price(problem, hardware, "tool")


def test_a_spatial_root_has_no_nests() -> None:
    problem, hardware = parsed(RUNS[0])
    spatial = replace(problem, root=replace(problem.root, spatial=True))
    with pytest.raises(CostError, match="is a spatial root; the root of a mapping"):
        build_nests(spatial, hardware)


def test_the_node_above_lists_what_a_spatial_node_moves() -> None:
    problem, hardware = parsed(RUNS[0])
    root = problem.root
    below = next(
        tile for tile in walk_tiles(root) if problem.parent.get(tile.index) is root
    )
    assert below.spatial
    entry = below.entries[0]
    others = tuple(each for each in root.entries if each.key != entry.key)
    reason = f"{below.name} moves tensor {entry.tensor} .* {root.name} does not list; "
    with pytest.raises(CostError, match=reason):
        build_nests(replace(problem, root=replace(root, entries=others)), hardware)


@runs
def test_only_what_is_below_the_roofline_is_an_artifact(run: Mapping[str, Any]) -> None:
    """One run was made to be: DRAM needs 41943 cycles for its weights alone."""
    estimate = price(*parsed(run), "tool")
    assert estimate.is_artifact == (run["family"] == "roofline-violation")
    if estimate.is_artifact:
        assert estimate.latency == 17734
        assert estimate.roofline == pytest.approx(42035, abs=1)
