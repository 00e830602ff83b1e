"""benchmarks/ladder.py: what it predicts, and that its measurements work."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import ladder
import ladder_runs
import pytest
import torch
from gpu_device.timing import Rounds, WallClock
from ladder_runs import Measured

from comet.runtime.virtual import NoDevice

SCRIPT = Path(ladder.__file__)
ONE_CASE = ["--ranks", "2", "--rows", "16", "--keys", "--batch"]
RATIOS = re.compile(r"(\d+\.\d\d) / (\d+\.\d\d)")


def test_a_prediction_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert ladder.main(["--predict", *ONE_CASE]) == 0
    _, columns, line = capsys.readouterr().out.splitlines()
    assert columns.split() == ["case", "ranks", *ladder.LADDER]
    assert line.startswith("AG+GEMM M=16")
    ratios = [[float(ratio) for ratio in pair] for pair in RATIOS.findall(line)]
    assert len(ratios) == len(ladder.LADDER) - 1
    assert all(0.1 < ratio < 10 for pair in ratios for ratio in pair)


def test_a_dry_run_takes_all_steps() -> None:
    """Compile, check three launches, capture, replay and time, for every pattern."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--dry-run", *ONE_CASE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[3:]
    names = [line.removeprefix("AG+GEMM M=16").split()[:2] for line in lines]
    assert names == [["2", pattern] for pattern in ladder.LADDER]
    assert all(len(RATIOS.findall(line)) == 2 for line in lines)
    assert "WRONG" not in done.stdout


def test_without_a_gpu_nothing_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert ladder.main(ONE_CASE) == 1
    assert capsys.readouterr().err == (
        "ladder: error: torch finds no GPU; use --predict or --dry-run\n"
    )


T = TypeVar("T")


def returning(value: T) -> Callable[..., T]:
    """Return a function of anything that returns this."""

    def call(*arguments: object, **keywords: object) -> T:
        return value

    return call


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_result_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: bool
) -> None:
    times = {
        "bsp": Measured(2e-5, 1e-5, 1e-4, ok=True),
        "pull": Measured(1e-5, 8e-6, 0.5, ok=not wrong),
    }
    monkeypatch.setattr(ladder_runs, "measured", returning(times))
    monkeypatch.setattr(ladder, "model_times", returning(times))
    options = ladder.options_of(["--dry-run", *ONE_CASE])
    right = ladder.measure(options, "a GPU", NoDevice(), WallClock(), Rounds())
    assert right == (not wrong)
    *_, bsp, pull = capsys.readouterr().out.splitlines()
    assert bsp.endswith("1.0e-04  20.0 us / 10.0 us")
    assert pull.endswith("5.0e-01 WRONG" if wrong else "5.0e-01")
    assert "2.00 / 1.25" in pull
