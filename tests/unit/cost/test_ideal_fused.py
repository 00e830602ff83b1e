"""
The model `ideal` against AccelForge on programs of several operations.

The peer sums operations, each as long as its slowest component, keeps what it likes in
the shared buffers, and counts one step per element of a vector operation. The mappings
here do the same: rows are shared by clusters and cores, right operands go to all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from paths import COST_DATA, HARDWARE

from comet.codegen.comet.reader import read_files
from comet.cost.estimate import Estimate
from comet.cost.from_ir.mapping import estimate_module

EDGE = (HARDWARE / "edge.yaml").read_text()

Document = dict[str, Any]

PEERS: list[Document] = json.loads((COST_DATA / "peers_fused.json").read_text())
"""Best latencies found by AccelForge 1.0.467 on the edge machine, in 8 bits."""

EDGE_OF_PEERS = EDGE.replace("computeWidth: 16", "computeWidth: 64")
"""The peer's vector units have 64 lanes a core."""

MESH = {"M": 2}
SHARES = 16
"""Clusters times cores."""


@dataclass(frozen=True)
class Op:
    """One operation: its kind, and the axes of every tensor, the result last."""

    name: str
    kind: str
    tensors: Mapping[str, str]

    @property
    def unit(self) -> str:
        return "GEMMEngine" if self.kind == "gemm" else "SE"

    @property
    def buffers(self) -> tuple[str, ...]:
        """Where the tensors lie beside the unit."""
        return (
            ("IB", "WB", "OB") if self.kind == "gemm" else ("OB",) * len(self.tensors)
        )

    @property
    def result(self) -> str:
        return list(self.tensors)[-1]


@dataclass(frozen=True)
class Program:
    """Operations in order, extents, and the tensors that lie in DRAM."""

    dims: Mapping[str, int]
    ops: Sequence[Op]
    stored: Sequence[str]


GEMM_GEMM = (
    Op("G1", "gemm", {"A": "MK", "B": "KN", "C": "MN"}),
    Op("G2", "gemm", {"C": "MN", "D": "NL", "E": "ML"}),
)
SOFTMAX = (
    Op("MAX", "max", {"C": "MN", "D": "M"}),
    Op("EXP", "add", {"C": "MN", "D": "M", "F": "MN"}),
    Op("SUM", "add", {"F": "MN", "G": "M"}),
    Op("DIV", "div", {"F": "MN", "G": "M", "H": "MN"}),
)
"""One step per element, as the peer counts: an exponential is an `add` here."""

PROGRAMS = {
    "gemm_gemm": Program(
        {"M": 256, "N": 256, "K": 128, "L": 128}, GEMM_GEMM, ("A", "B", "D", "E")
    ),
    "gemm_gemm_unfused": Program(
        {"M": 256, "N": 256, "K": 128, "L": 128}, GEMM_GEMM, ("A", "B", "C", "D", "E")
    ),
    "gemm_softmax": Program(
        {"M": 256, "N": 256, "K": 128},
        (Op("G1", "gemm", {"A": "MK", "B": "KN", "C": "MN"}), *SOFTMAX),
        ("A", "B", "D", "H"),
    ),
    "attention": Program(
        {"M": 256, "N": 256, "K": 64, "L": 64},
        (
            Op("G1", "gemm", {"A": "MK", "B": "KN", "C": "MN"}),
            *SOFTMAX,
            Op("G2", "gemm", {"H": "MN", "V": "NL", "O": "ML"}),
        ),
        ("A", "B", "D", "V", "O"),
    ),
}


def tile(
    kind: str,
    program: Program,
    entries: Sequence[tuple[str, str, str, str]],
    rows: Sequence[Mapping[str, int]],
    below: Sequence[Document],
) -> Document:
    """Return a node that moves (tensor, operation, source, destination)."""
    count = len(entries)
    texts = [
        " ".join(f"{dim}={[row.get(dim, 1)] * count}" for dim in program.dims)
        for row in rows
    ]
    return {
        "node_type": "DataMovement_Tile",
        "type": kind,
        "tensors": [entry[0] for entry in entries],
        "tag": [entry[1] for entry in entries],
        "target": [entry[2] for entry in entries],
        "child": [entry[3] for entry in entries],
        "precision": [8] * count,
        "factors": texts,
        "permutation": "".join(program.dims),
        "subtree": list(below),
    }


def nest(program: Program, op: Op) -> Document:
    """Return the nodes of one operation below the shared buffer."""
    fills = [(t, op.name, "GB", b) for t, b in zip(op.tensors, op.buffers, strict=True)]
    feeds = [(t, op.name, source, op.unit) for t, _, _, source in fills]
    own = set("".join(op.tensors.values()))
    sizes = {d: n if d in own else 1 for d, n in program.dims.items()}
    sizes["M"] //= SHARES
    text = " ".join(f"{d}={n}" for d, n in sizes.items())
    # Dimensions that the operation lacks are whole in its steps.
    steps = {**program.dims, **{d: sizes[d] for d in own}}
    steps_text = " ".join(f"{d}={n}" for d, n in steps.items())
    leaf: Document = {
        "node_type": "Operation",
        "type": op.kind,
        "name": op.name,
        "tensors": list(op.tensors),
        "TilePrimitive": text,
        "TileSteps": dict.fromkeys(op.tensors, steps_text),
        "compute_attributes": {
            "reduction_dimensions": ["M"],
            "reduction_factors": [sizes["M"] if op.kind == "gemm" else 1],
            "rmw": True,
            "specd": True,
        },
    }
    inner = tile("temporal", program, feeds, [{}], [leaf])
    cores = tile("spatial", program, fills, [MESH, MESH], [inner])
    return tile("temporal", program, fills, [{}], [cores])


def mapping(program: Program) -> Document:
    """Return the mapping: nests in turn, below one node that shares the rows."""
    moved = [
        (tensor, op.name, "DRAM", "GB")
        for op in program.ops
        for tensor in op.tensors
        if tensor in program.stored
    ]
    binding = {"node_type": "inter_tile_binding", "binding": "sequential"}
    nests = [nest(program, op) for op in program.ops]
    below = [node for n in nests[:-1] for node in (binding, n)] + nests[-1:]
    clusters = tile("spatial", program, moved, [MESH, MESH], below)
    return tile("temporal", program, moved, [{}], [clusters])


def problem(program: Program) -> Document:
    """Return the problem file."""
    made = {op.result for op in program.ops}
    used = {t for op in program.ops for t in list(op.tensors)[:-1]}
    return {
        "io": {
            "ins": ",".join(sorted(used - made)),
            "outs": ",".join(sorted(made & {*program.stored})),
        },
        "dimensions": list(program.dims),
        "instance": dict(program.dims),
        "operations": [
            {
                "name": op.name,
                "ins": ",".join(list(op.tensors)[:-1]),
                "out": op.result,
                "dimensions": sorted(set("".join(op.tensors.values()))),
                "tensors": [
                    {
                        "name": tensor,
                        "projection": [[[axis]] for axis in axes],
                        "read-write": tensor == op.result,
                    }
                    for tensor, axes in op.tensors.items()
                ],
            }
            for op in program.ops
        ],
    }


def estimate(name: str) -> Estimate:
    program = PROGRAMS[name]
    documents: Document = {
        "problem.yaml": {"problem": problem(program)},
        "mapping.yaml": {"mapping": mapping(program)},
        "constants.yaml": {"const": {"unused": 1}},
    }
    texts = {file: json.dumps(document) for file, document in documents.items()}
    return estimate_module(read_files({"arch.yaml": EDGE_OF_PEERS, **texts}), "ideal")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer["name"])
def test_latency_equals_the_peer(peer: Document) -> None:
    got = estimate(peer["name"])
    assert got.latency == pytest.approx(peer["accelforge"], rel=1e-6)
    if peer["dram_energy"] is not None:
        assert got.energy_by_level["DRAM"] == pytest.approx(peer["dram_energy"])


def test_fusing_saves_what_the_intermediate_costs() -> None:
    fused, unfused = estimate("gemm_gemm"), estimate("gemm_gemm_unfused")
    assert unfused.latency - fused.latency == pytest.approx(2 * 256 * 256 / 25)
