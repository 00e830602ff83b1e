"""The model `ideal` against Timeloop and AccelForge at the same traffic."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from paths import COST_DATA, HARDWARE

from comet.codegen.comet.reader import read_files
from comet.cost.estimate import Estimate
from comet.cost.from_ir.mapping import estimate_module

EDGE, CLOUD = ((HARDWARE / f"{name}.yaml").read_text() for name in ("edge", "cloud"))

Sizes = Mapping[str, int]
Document = dict[str, Any]

PEERS: list[Document] = json.loads((COST_DATA / "peers.json").read_text())
"""Best latencies found by AccelForge 1.0.467 and by Timeloop, for GEMMs in 8 bits."""


def factors(sizes: Mapping[str, int], count: int) -> str:
    """One row of factors, alike for so many tensors."""
    return " ".join(f"{d}={[f] * count}" for d, f in sizes.items())


def tile(
    kind: str, route: Mapping[str, tuple[str, str]], rows: list[Sizes]
) -> Document:
    """A data-movement node without children."""
    return {
        "node_type": "DataMovement_Tile",
        "type": kind,
        "tensors": list(route),
        "tag": ["GEMM"] * len(route),
        "target": [source for source, _ in route.values()],
        "child": [destination for _, destination in route.values()],
        "precision": [8] * len(route),
        "factors": [factors(row, len(route)) for row in rows],
        "permutation": "KMN",
    }


def gemm_mapping(dims: Sizes, clusters: int, cores: int) -> Document:
    """Each operand crosses the root once: N over clusters, M or N over cores."""
    one = dict.fromkeys(dims, 1)
    spread = "M" if dims["M"] % cores == 0 else "N"
    side = int(clusters**0.5)
    inner = {**dims, "N": dims["N"] // clusters}
    inner[spread] //= cores
    steps = {d: min(n, 16 if d == "M" else 256) for d, n in inner.items()}
    leaf = {d: inner[d] // steps[d] for d in dims}
    sizes = " ".join(f"{d}={n}" for d, n in steps.items())
    drains = {"A": ("DRAM", "GB"), "B": ("DRAM", "GB"), "C": ("DRAM", "GB")}
    fills = {"A": ("GB", "IB"), "B": ("GB", "WB"), "C": ("GB", "OB")}
    feeds = {t: (fills[t][1], "GEMMEngine") for t in fills}
    nodes = [
        tile("temporal", drains, [one]),
        tile("spatial", drains, [{**one, "N": side}] * 2),
        tile("temporal", fills, [one]),
        tile("spatial", fills, [{**one, spread: int(cores**0.5)}] * 2),
        tile("temporal", feeds, [leaf]),
    ]
    below: Document = {
        "node_type": "Operation",
        "type": "GEMM",
        "name": "GEMM",
        "tensors": list(fills),
        "TilePrimitive": sizes,
        "TileSteps": dict.fromkeys(fills, sizes),
        "compute_attributes": {
            "reduction_dimensions": ["M"],
            "reduction_factors": [steps["M"]],
            "rmw": True,
            "specd": True,
        },
    }
    for node in reversed(nodes):
        below = {**node, "subtree": [below]}
    return below


def gemm_problem(dims: Sizes) -> Document:
    """The problem file of one GEMM."""

    def tensor(name: str, axes: str) -> Document:
        return {"name": name, "projection": [[[axis]] for axis in axes]}

    tensors = [tensor("A", "MK"), tensor("B", "KN"), tensor("C", "MN")]
    tensors[2]["read-write"] = True
    return {
        "io": {"ins": "A,B", "outs": "C"},
        "dimensions": list(dims),
        "instance": dict(dims),
        "operations": [
            {
                "name": "GEMM",
                "ins": "A,B",
                "out": "C",
                "dimensions": list(dims),
                "tensors": tensors,
            }
        ],
    }


def estimate(arch: str, dims: Sizes) -> Estimate:
    """The estimate of a GEMM whose operands cross the root once."""
    instances = 4 if arch == EDGE else 16
    files: Document = {
        "problem.yaml": {"problem": gemm_problem(dims)},
        "mapping.yaml": {"mapping": gemm_mapping(dims, instances, instances)},
        "constants.yaml": {"const": {"unused": 1}},
    }
    texts = {name: json.dumps(document) for name, document in files.items()}
    module = read_files({"arch.yaml": arch, **texts})
    return estimate_module(module, "ideal")


@pytest.mark.parametrize("peer", PEERS, ids=lambda p: p["name"])
def test_latency_equals_the_peers(peer: Document) -> None:
    arch = EDGE if peer["arch"] == "edge" else CLOUD
    got = estimate(arch, peer["dims"]).latency
    assert got == pytest.approx(peer["accelforge"], rel=1e-6)
    assert got == pytest.approx(peer["timeloop"], abs=1)


@pytest.mark.parametrize("peer", PEERS, ids=lambda p: p["name"])
def test_root_energy_equals_the_peers(peer: Document) -> None:
    arch = EDGE if peer["arch"] == "edge" else CLOUD
    got = estimate(arch, peer["dims"]).energy_by_level["DRAM"]
    assert got == pytest.approx(peer["dram_energy"], rel=1e-6)
