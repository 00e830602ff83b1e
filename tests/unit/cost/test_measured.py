"""The model against what was measured on an H200 (`tests/data/h200.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from math import exp, fsum, log
from pathlib import Path

import pytest
from gpu_programs import of_one_rank
from ladder_programs import Case, after_passes, predicted_times

RECORD = Path(__file__).parents[2] / "data" / "h200.json"
CLOSE = 1.25
"""How many times a prediction may be a measured time, or the other way."""


def tilings(id: str, dims: str) -> Iterator[tuple[str, float]]:
    """Yield the factors of each tiling of a case, and its microseconds."""
    cases = json.loads(RECORD.read_text())["cases"]
    (case,) = (case for case in cases if case["id"] == id)
    for _, cold, _, _, options in case["times"]:
        factors = {**case["options"], **options}["factors"]
        if re.search(dims, factors):
            yield factors, cold


GEMM = "candidates/time/gemm/4096x4096x4096-candidates"
DECODE = "candidates/time/flash_decode/H12-G8-D128-E128-B4-S65536-candidates"
SQUARE = {"M": 4096, "N": 4096, "K": 4096}
KEYS = {"B": 4, "H": 12, "G": 8, "S": 65536, "D": 128, "E": 128}


@pytest.mark.parametrize(
    ("id", "sample", "extents", "split", "chosen"),
    [
        (GEMM, "gemm", SQUARE, "none", "M=32 .*stages=[123] .*K=64|M=32 .*K=128"),
        (DECODE, "flash_decode", KEYS, "S=16", "warps=4 stages=[23] .*S_in=64;"),
    ],
)
def test_what_was_measured_is_near(
    id: str, sample: str, extents: dict[str, int], split: str, chosen: str
):
    """Stages, terms of an iteration, and waves that are not full."""
    found = list(tilings(id, chosen))
    assert len(found) > 1
    program = of_one_rank(sample, extents, "bfloat16")
    errors: list[float] = []
    for factors, measured in found:
        compiler = replace(program.compiler, split=split, factors=factors)
        plan = after_passes(Case("", 1, program.text), program.hardware, [compiler])
        errors.append(log(1e6 * predicted_times(plan).graph / measured))
    assert max(map(abs, errors)) < log(CLOSE)
    assert exp(fsum(map(abs, errors)) / len(errors)) < 1.1
    slowest = max(range(len(found)), key=lambda place: found[place][1])
    predicted = [errors[place] + log(found[place][1]) for place in range(len(found))]
    assert predicted[slowest] == max(predicted)


@pytest.mark.parametrize(
    ("sample", "measured"), [("attention", 2103.2), ("attention_causal", 1265.3)]
)
def test_two_pipelines_fill_the_shared_memory(sample: str, measured: float):
    """Two programs of 113 KB run at a time: the second run of figures/h200.md."""
    extents = {"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128}
    program = of_one_rank(sample, extents, "bfloat16")
    tiles = "o: B=4 H=32 M=64 E=1 warps=4 stages=3 group=1; m_n: N=64; products_d: D=1"
    options = {"strategy": "full", "factors": tiles, "order": "longest"}
    compiler = replace(program.compiler, **options)
    plan = after_passes(Case("", 1, program.text), program.hardware, [compiler])
    assert abs(log(1e6 * predicted_times(plan).graph / measured)) < log(1.1)


ATTENTION = {"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128}


def test_the_order_of_causal_tiles():
    """By hand, specialized: head by head, 8 heads together, and persistent so."""
    program = of_one_rank("attention_causal", ATTENTION, "bfloat16")
    tiles = "B=4 H=32 M=32 E=1 warps=4 stages=2 specialize=1"
    forms = {(1, "none"): 1100.0, (8, "none"): 1085.0, (8, "all"): 1037.0}
    found: list[float] = []
    for (group, persist), measured in forms.items():
        factors = f"o: {tiles} group={group}; m_n: N=32; products_d: D=1"
        options = {"factors": factors, "order": "longest", "persist": persist}
        compiler = replace(program.compiler, strategy="full", **options)
        plan = after_passes(Case("", 1, program.text), program.hardware, [compiler])
        found.append(1e6 * predicted_times(plan).graph)
        assert abs(log(found[-1] / measured)) < log(1.12)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(("stages", "measured"), [(1, 4498.7), (2, 3128.4)])
def test_keys_and_values_are_loaded_behind_the_weights(stages: int, measured: float):
    """One wait for both; of an iteration, only the second product overlaps loads."""
    program = of_one_rank("attention", ATTENTION, "bfloat16")
    grid = f"o: B=4 H=32 M=32 E=1 warps=8 stages={stages} group=1"
    factors = f"{grid}; m_n: N={64 // stages}; products_d: D=1"
    options = {"factors": factors, "specialize": False, "strategy": "full"}
    compiler = replace(program.compiler, **options)
    plan = after_passes(Case("", 1, program.text), program.hardware, [compiler])
    assert abs(log(1e6 * predicted_times(plan).graph / measured)) < log(1.15)
