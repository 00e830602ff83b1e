"""benchmarks/gpu_run: cases in their order, what is lost, and a second call."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from covering import exhaustive
from gpu_device import references
from gpu_folders import check, write_folder
from gpu_run import command
from gpu_run.case import Case
from gpu_run.command import main, spoken
from gpu_run.results import Facts, Report, results_for
from gpu_run.timed import timed
from gpu_run.work import Order

TIMED = Case(
    "speed/time/both",
    "speed",
    "time",
    3,
    300.0,
    "both",
    modules={"hung": "hang.py", "faulty": "faulty.py", "comet": "right.py"},
)
CASES = (
    check("right", 1),
    check("hang", 1, limit=0.5),
    check("wrong", 2),
    check("large", 2),
    TIMED,
    check("crash", 4),
)
NO_GPU = "torch finds no GPU; use --dry-run to see the steps"
IDS = [case.id for case in CASES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "cases", CASES)
    return tmp_path / "cases"


@pytest.fixture
def dry_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return the arguments of a dry run, and let the environment stay as it is."""
    for name in ("TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION"):
        monkeypatch.setenv(name, "1")
    return ["--dry-run", "--out", str(tmp_path / "R.json")]


@contextmanager
def described() -> Generator[None]:
    """Let no process import torch to say what machine this is."""

    def facts(session: command.Session) -> Facts:
        return {"device": "cuda", "name": "a GPU"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command.Session, "describe", facts)
        yield


def report_in(folder: Path) -> Report:
    return json.loads((folder.parent / "R.json").read_text())


@exhaustive
def test_all_cases_and_what_is_lost(
    folder: Path, dry_run: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with described():
        none = [*dry_run, "--only", "correctness", "--minutes", "0"]
        assert main(none, folder) == 0
    said = capsys.readouterr().out
    assert "not reached: 5 of correctness; the same command goes on with" in said
    assert report_in(folder)["results"] == {}

    assert main(dry_run, folder) == 1
    assert "has 6 cases: 2 lost, 1 wrong" in capsys.readouterr().out
    report = report_in(folder)
    assert list(report["results"]) == IDS
    assert {result.get("run") for result in report["results"].values()} == {1}
    found = {id.split("/")[-1]: result for id, result in report["results"].items()}
    assert found["right"].get("alternatives", {})["comet"].get("ok")
    assert found["hang"].get("reason") == "it took longer than 0.5 s"
    assert not found["wrong"].get("alternatives", {})["comet"].get("ok", True)
    assert found["large"].get("alternatives") == {
        "comet": {"missing": "OutOfMemoryError: no room for a tile"}
    }
    assert found["crash"].get("reason") == "its process ended with code 7"
    timed = found["both"].get("alternatives", {})
    assert set(timed["comet"].get("times", {})) == {"cold", "warm"}
    assert timed["faulty"] == {
        "missing": "IndexError: index 9 is out of bounds for dimension 0 with size 8"
    }
    assert timed["hung"].get("missing") == (
        "its kernels are not tried again: correctness/check/hang: it took longer than "
        "0.5 s"
    )

    with described():
        assert main(dry_run, folder) == 1  # nothing is left to do
    assert report_in(folder) == report


def test_what_is_timed_is_compared(
    folder: Path, dry_run: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    monkeypatch.setitem(references.KINDS, "both", twice)
    modules = {"comet": "right.py", "other": "wrong.py"}
    order = Order(replace(TIMED, modules=modules), folder, dry_run=True, left_out={})
    found = timed(order)
    assert [each.get("ok") for each in found.values()] == [True, False]
    assert all(len(each.get("times", {})) == 2 for each in found.values())
    assert spoken({"alternatives": found}).count("WRONG") == 1


def test_a_second_call_does_what_is_missing(
    folder: Path, dry_run: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session = command.session_of(folder, command.options_of(dry_run))
    done = session.results.manifest.cases[:-1]
    session.results.started(
        {"started": "", "minutes": None, "machine": {"name": "x"}, "dry_run": True}
    )
    for case in done:
        session.results.add(case, {"state": "done", "seconds": 1.0})
    assert main([*dry_run, "--list"], folder) == 0
    assert capsys.readouterr().out.split() == [IDS[-1]]
    assert main([*dry_run, "--list", "--only", "speed"], folder) == 0
    assert not capsys.readouterr().out.split()


def test_an_interrupt_leaves_the_results(
    folder: Path,
    dry_run: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(session: command.Session) -> None:
        session.results.add(CASES[0], {"state": "done", "seconds": 1.0})
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Session, "go", interrupted)
    with described():
        assert main(dry_run, folder) == 130
    assert capsys.readouterr().out.startswith("interrupted\n")
    assert list(report_in(folder)["results"]) == [IDS[0]]


def test_results_of_other_modules_are_refused(tmp_path: Path) -> None:
    manifest = write_folder(tmp_path / "one", CASES)
    results = results_for(tmp_path / "R.json", manifest)
    results.add(CASES[0], {"state": "done"})
    other = replace(manifest, cases=CASES[:1])
    with pytest.raises(ValueError, match=r"R.json has results of other modules; name"):
        results_for(tmp_path / "R.json", other)


def test_what_cannot_be_run_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], tmp_path) == 1
    error = capsys.readouterr().err
    assert error.endswith(
        "has no manifest.json; write it with benchmarks/gpu.py emit\n"
    )
    write_folder(tmp_path / "part", CASES)
    (tmp_path / "part" / "modules" / "wrong.py").unlink()
    assert main(["--dry-run"], tmp_path / "part") == 1
    assert "lacks 1 of 6 modules, such as wrong.py; copy" in capsys.readouterr().err
    real = replace(write_folder(tmp_path / "real", CASES), tiny=False)
    (tmp_path / "real" / "manifest.json").write_text(real.text())
    assert main(["--dry-run"], tmp_path / "real") == 1
    assert "has programs of real sizes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("facts", "dry_run", "problem"),
    [
        (
            {"device": "cpu"},
            False,
            "torch finds no GPU; use --dry-run to see the steps",
        ),
        ({"device": "cpu"}, True, None),
        ({"device": "cuda"}, False, None),
        ({"torch": "2.9.1"}, False, "torch is 2.9.1; this needs 2.11 or newer"),
        ({"triton": "3.10.0"}, False, "triton is 3.10.0; this needs 3.6 to 3.9"),
    ],
)
def test_machines_that_cannot_be_used(
    facts: dict[str, object], dry_run: bool, problem: str | None
) -> None:
    good: dict[str, object] = {"device": "cuda", "torch": "2.11.0", "triton": "3.6.0"}
    assert command.problem_with(good | facts, dry_run) == problem


@exhaustive
def test_without_a_gpu_nothing_is_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert main(["--out", str(tmp_path / "R.json")], folder) == 1
    assert capsys.readouterr().err == f"run: error: {NO_GPU}\n"
