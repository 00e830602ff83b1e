"""benchmarks/gpu.py table: what it says of results that were written by hand."""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import gpu_model
import pytest
from gpu_goals import LADDER, MICROSECONDS
from gpu_run.case import Case, Manifest, Predicted
from gpu_run.results import (
    Alternative,
    Report,
    Result,
    Results,
    Run,
    Times,
    results_for,
)
from gpu_table import tables
from paths import DATA, ROOT

GOLDEN = DATA / "gpu_table.md"
SQUARE = "4096x4096x4096"


def times(**medians: float) -> Alternative:
    """Return an alternative with these medians, in microseconds."""
    found = {
        name: Times(median=value * 1e-6, lower=0.0, upper=0.0, n=100)
        for name, value in medians.items()
    }
    return Alternative(times=found)


def checked(error: float | None, ok: bool) -> Alternative:
    return Alternative(error=error, tolerance=0.01, ok=ok)


CASES = (
    Case("machine/calibrate", "machine", "calibrate", 0, 1.0),
    Case(
        "correctness/check/gemm/odd",
        "correctness",
        "check",
        1,
        1.0,
        "gemm",
        "odd",
        modules={"comet": "a.py"},
    ),
    Case(
        "correctness/compare/attention/large",
        "correctness",
        "compare",
        1,
        1.0,
        "attention",
        "large",
        modules={"comet": "b.py"},
    ),
    Case(
        "correctness/compare/gemm_softmax/huge",
        "correctness",
        "compare",
        1,
        1.0,
        "gemm_softmax",
        "huge",
        refused={"comet": "tile: no tile of 2^40 rows fits; use fewer"},
    ),
    Case(
        f"speed/time/gemm_softmax/{SQUARE}",
        "speed",
        "time",
        2,
        1.0,
        "gemm_softmax",
        SQUARE,
        modules={"comet": "c.py"},
        predicted={"comet": Predicted(200e-6, 190e-6)},
    ),
    Case(
        "ladder/time/ag_gemm/4-ranks-16x3584x8192",
        "ladder",
        "time",
        3,
        1.0,
        "ag_gemm",
        "4 ranks 16x3584x8192",
        extents={"M": 16, "N": 3584, "K": 8192},
        ranks=4,
        modules={"bsp": "d.py", "pull": "e.py", "push": "f.py"},
        same={"auto": "pull"},
        predicted={
            "bsp": Predicted(60e-6, 50e-6),
            "pull": Predicted(40e-6, 40e-6),
            "push": Predicted(40e-6, 25e-6),
        },
    ),
    Case(
        "ladder/time/ag_gemm/8-ranks-16x3584x8192",
        "ladder",
        "time",
        3,
        1.0,
        "ag_gemm",
        "8 ranks 16x3584x8192",
        ranks=8,
        modules={"bsp": "g.py"},
    ),
    Case("machine/exchange", "machine", "exchange", 0, 1.0),
    Case(
        f"candidates/time/gemm/{SQUARE}",
        "candidates",
        "time",
        6,
        1.0,
        "gemm",
        SQUARE,
        modules={f"candidate_{place}": f"{place}.py" for place in (1, 2, 3, 4)},
        predicted={
            f"candidate_{place}": Predicted(time * 1e-6, time * 1e-6)
            for place, time in zip((1, 2, 3, 4), (200, 210, 220, 230), strict=True)
        },
    ),
    Case(
        "speed/time/flash_decode/small",
        "speed",
        "time",
        3,
        1.0,
        "flash_decode",
        "small",
        extents={"B": 2, "H": 4, "G": 8, "S": 4321, "D": 64, "E": 61},
        modules={"comet": "h.py", "unsplit": "i.py"},
    ),
    Case(
        "candidates/time/flash_decode/by-hand",
        "candidates",
        "time",
        5,
        1.0,
        "flash_decode",
        "by hand",
        extents={"G": 8, "S": 4321, "D": 64, "E": 61, "B": 2, "H": 4},
        modules={"32 keys": "j.py", "64 keys": "k.py"},
    ),
)
ALTERNATIVES: Mapping[str, Mapping[str, Alternative]] = {
    CASES[1].id: {"comet": checked(0.002, True)},
    CASES[4].id: {
        "comet": times(cold=250.0, warm=240.0),
        "compile": times(cold=200.0, warm=190.0),
        "product": Alternative(times(cold=175.0, warm=170.0), partial=True),
        "compile_graph": Alternative(missing="no graph today"),
    },
    CASES[5].id: {
        "bsp": times(eager=80.0, graph=60.0),
        "pull": times(eager=40.0, graph=40.0),
        "push": Alternative(missing="OutOfResources: shared memory"),
        "product": times(eager=30.0, graph=29.0),
    },
    CASES[8].id: {
        "candidate_1": times(cold=210.0, warm=200.0),
        "candidate_2": times(cold=200.0, warm=200.0),
        "candidate_3": times(cold=220.0, warm=200.0),
        "candidate_4": Alternative(missing="OutOfResources: shared memory"),
    },
    CASES[9].id: {
        "comet": times(cold=4.0, warm=3.0),
        "unsplit": times(cold=2.5, warm=2.0),
    },
    CASES[10].id: {
        "32 keys": times(cold=3.2, warm=3.0),
        "64 keys": times(cold=8.0, warm=8.0),
    },
}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Return results with one of everything."""
    found = results_for(tmp_path / "R.json", Manifest(False, "0.1.0", CASES))
    machine = {"device": "cuda", "name": "NVIDIA H200", "torch": "2.11.0"}
    found.started(
        {"started": "today", "minutes": 8.0, "machine": {**machine}, "dry_run": False}
    )
    calibration = {"hbm_gb_per_s": 4321.0, "launch_us": 2.5}
    found.add(CASES[0], {"state": "done", "calibration": {**calibration}})
    found.add(CASES[7], {"state": "done", "exchanges": {"exchange_us": 0.875}})
    reason = "it took longer than 1 s"
    found.add(CASES[2], {"state": "lost", "reason": reason, "seconds": 1.0})
    for case in CASES:
        if case.id in ALTERNATIVES:
            alternatives = dict(ALTERNATIVES[case.id])
            found.add(case, {"state": "done", "alternatives": alternatives})
    return found


def test_tables(results: Results) -> None:
    assert tables(results) + "\n" == GOLDEN.read_text()


def test_goals_and_choices(results: Results) -> None:
    """2 us for 8,642,000 bytes at 4321 GB/s; 210 and 200 us of the best tilings."""
    text = tables(results)
    assert "| flash_decode than its bytes | 1 | at most 1.03 | 2.00 | 1.25 |" in text
    assert "| gemm_softmax than compile | 1 | 1.25, each 1.00 | 0.80 | 0.80 |" in text
    assert "| ag_gemm, M <= 64 than bsp | 1 | 1.25 | 1.50 | 1.50 | 1.50 |" in text
    assert f"| {SQUARE} | 3 | 210.0 | 200.0 | candidate_2 | 5.0% | 0.50 |" in text


def test_tilings_by_hand_stand_beside_what_comet_takes(results: Results) -> None:
    row = "| flash_decode | by hand | 2 | 4.0 | 3.2 | 32 keys | 25.0% |"
    assert row in tables(results)


def test_wrong_kernels_have_no_times(results: Results) -> None:
    case = CASES[9]
    found = {**ALTERNATIVES[case.id], "unsplit": times(cold=1.0, warm=1.0)}
    found["unsplit"] |= checked(None, False)
    results.add(case, {"state": "done", "alternatives": found})
    text = tables(results)
    assert "| unsplit | wrong |" in text
    assert "| unsplit | 1 |" not in text


def test_what_failed_often_is_one_line(results: Results) -> None:
    """Two alternatives of different cases had no room."""
    (line,) = (each for each in tables(results).splitlines() if "shared memory" in each)
    assert line == (
        "* missing: OutOfResources: shared memory: "
        "ladder/time/ag_gemm/4-ranks-16x3584x8192 push, "
        f"candidates/time/gemm/{SQUARE} candidate_4"
    )


def test_wrong_results_are_failures(results: Results) -> None:
    wrong = {"comet": checked(None, False)}
    results.add(CASES[1], {"state": "done", "alternatives": wrong})
    text = tables(results)
    assert "**1 lost, 1 wrong**" in text
    assert "* wrong: comet not finite of 1.0e-02: correctness/check/gemm/odd" in text
    assert "| gemm | numpy, small | 0 | 1 | 0 | - |" in text


def test_nothing_is_a_table_too(tmp_path: Path) -> None:
    text = tables(results_for(tmp_path / "R.json", Manifest(False, "0", CASES)))
    assert text.startswith("# The kernels on nothing")
    assert "Cases: 0 run, **0 lost, 0 wrong**, 10 not reached." in text


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1, 2, 3), (10, 20, 1000), 1.0),
        ((1, 2, 3), (3, 2, 1), -1.0),
        ((1, 2, 3, 4), (2, 1, 4, 3), 0.6),
        ((1, 2, 2, 3), (1, 2, 3, 4), 3 / math.sqrt(10)),
        ((1, 1), (1, 2), math.nan),
    ],
)
def test_spearman(
    first: tuple[float, ...], second: tuple[float, ...], expected: float
) -> None:
    found = gpu_model.spearman(first, second)
    assert found == pytest.approx(expected, nan_ok=True)


def test_goals_from_rates_are_times() -> None:
    """585 Tflop/s of 4 * 4 * 32 * 4096^2 * 128 operations."""
    goals = MICROSECONDS["attention"]["B4 H32 M4096 N4096 D128 E128"]
    assert goals["cudnn"] == pytest.approx(1879.5, rel=1e-4)


def test_goals_are_of_cases_that_there_are() -> None:
    from gpu_cases import REAL, cases

    found = [each.case for each in cases(REAL)]
    timed = {(case.kind, case.about) for case in found if case.task == "time"}
    goals = {(kind, size) for kind, sizes in MICROSECONDS.items() for size in sizes}
    assert goals <= timed
    assert {("ag_gemm", about) for about in LADDER} <= timed


def test_every_field_is_documented() -> None:
    page = (ROOT / "docs" / "gpu-benchmarks.md").read_text()
    kinds = (Report, Run, Result, Alternative, Times)
    names = {name for kind in kinds for name in kind.__annotations__}
    names |= {field.name for kind in (Case, Manifest) for field in fields(kind)}
    assert not {name for name in names if f"`{name}`" not in page}
