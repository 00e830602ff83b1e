"""What comet-run says before and during a run that takes long."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from covering import exhaustive
from gpu_graphs import H200
from gpu_ranks import H200X8, SHARED_TEXTS
from triton_modules import emitted

from comet.runtime.child import announce
from comet.runtime.program import Program, RankProgram, load_module, program_of
from comet.runtime.progress import Expected, Progress, duration, expected_time, reported
from comet.runtime.request import Request

ATTENTION = """
func.func @f(%q: tensor<1x32x2048x128xf16>, %k: tensor<1x32x2048x128xf16>,
             %v: tensor<1x32x2048x128xf16>) -> tensor<1x32x2048x128xf16> {
  %o = compound.attention %q, %k, %v causal :
      (tensor<1x32x2048x128xf16>, tensor<1x32x2048x128xf16>,
       tensor<1x32x2048x128xf16>) -> tensor<1x32x2048x128xf16>
  func.return %o : tensor<1x32x2048x128xf16>
}
"""
GATHERED = SHARED_TEXTS["ag_gemm"]


emitted_once = cache(emitted)


def module_at(folder: Path, text: str, passes: str) -> Path:
    path = folder / "k.py"
    path.write_text(emitted_once(text, passes))
    return path


def program_at(path: Path) -> Program | RankProgram:
    return program_of(load_module(str(path)), str(path))


@pytest.fixture
def attention(tmp_path: Path) -> Path:
    return module_at(tmp_path, ATTENTION, f"{H200},triton-distributed")


@pytest.fixture
def gathered(tmp_path: Path) -> Path:
    passes = f"{H200X8},triton-distributed{{ranks=8 pattern=push}}"
    return module_at(tmp_path, GATHERED.format(M=1024, N=4096, K=14336), passes)


def test_a_large_product_on_ranks_is_announced(
    gathered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    announce(program_at(gathered), Request(str(gathered), "scheduler"))
    said = capsys.readouterr().err
    assert said.startswith("comet-run: Triton's interpreter and the numpy reference ")
    assert " h on this CPU, 5 times 50 min, and 60 s for its reference; " in said
    assert "--epochs 1 take less, --compile sm_90 or gfx942 checks" in said
    assert said.count("\n") == 1


def test_a_small_run_is_not_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = f"{H200X8},triton-distributed{{ranks=8}}"
    path = module_at(tmp_path, GATHERED.format(M=64, N=32, K=64), passes)
    announce(program_at(path), Request(str(path), "scheduler"))
    assert capsys.readouterr().err == ""


def test_the_estimate_counts_launches_and_references(attention: Path) -> None:
    time = expected_time(program_at(attention), 1)
    assert 300 < time.interpreter < 3000
    assert 5 < time.reference < 100
    assert Expected(3, 2, 5).total == 25


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_progress_counts_the_programs_of_a_stage() -> None:
    progress = Progress()
    progress.enter("launch 1 of 2")
    progress.launch(4).end()
    assert progress.text().startswith("launch 1 of 2: 1 of 4 programs done, about ")
    progress.enter("launch 1 of 2")
    assert progress.stage.done == 1
    progress.enter("launch 2 of 2")
    assert progress.text() == "launch 2 of 2 (1 s so far)"


def test_a_rank_behind_the_others_does_not_count_in_their_launch() -> None:
    progress = Progress()
    progress.enter("launch 1 of 2")
    behind = progress.launch(2)
    progress.enter("launch 2 of 2")
    progress.launch(1)
    behind.end()
    behind.end()
    progress.enter("launch 1 of 2")
    assert progress.text() == "launch 2 of 2: 0 of 1 programs done (1 s so far)"


def test_progress_is_printed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    with reported(every=0.01):
        while said.getvalue().count("\n") < 2:
            time.sleep(0.01)
    assert re.match(r"comet-run: .* \(.* so far\)\n", said.getvalue())


@exhaustive
def test_an_interrupted_run_says_how_far_it_was(attention: Path) -> None:
    code = "import sys; from comet.runtime.command import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(attention)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        announced = process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stderr.read()
    assert "about 15 min on this CPU" in announced
    assert rest.startswith("comet-run: stopped at ")
    assert "Traceback" not in rest
    assert process.returncode == 130
