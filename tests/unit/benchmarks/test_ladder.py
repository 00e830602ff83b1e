"""benchmarks/ladder.py: what it predicts."""

import re

import ladder
import pytest

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
