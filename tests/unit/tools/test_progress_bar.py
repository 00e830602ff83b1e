"""How far a search is, and what Ctrl-C leaves of it."""

import io
import json
import signal
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from time import sleep

import pytest
from programs import graph_text

from comet.api.answer import Progress
from comet.tools import comet_explore, progress_bar
from comet.tools.comet_explore import NOT_ALL, NOT_ANSWERED, NOT_WRITTEN
from comet.tools.progress_bar import CLEAR, ProgressBar, bar

HALF = Progress("latency", 200.0, 100.0, 0.5, 4, 1, 30)

EXPLORE = """
import atexit, signal
from pathlib import Path
from sys import argv
from time import process_time
from comet.tools import comet_explore, progress_bar
def interrupt(number, frame):
    start = process_time()
    note = Path(argv.pop())
    atexit.register(lambda: note.write_text(str(process_time() - start)))
    signal.default_int_handler(number, frame)
# A shell lets processes in the background ignore Ctrl-C, and their children.
signal.signal(signal.SIGINT, interrupt)
progress_bar.LINE_EVERY = 0.05
comet_explore.main(argv[1:-1])
"""
"""Searches; writes what processor time passed since Ctrl-C to the last argument."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress_bar, "LINE_EVERY", 0.01)
    monkeypatch.setattr(progress_bar, "BAR_EVERY", 0.01)


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressBar() as progress:
        progress(HALF)
        while not stream.getvalue():
            sleep(0.01)
    return stream.getvalue()


def test_lines(monkeypatch: pytest.MonkeyPatch):
    line = shown(monkeypatch, io.StringIO()).splitlines()[0]
    assert line == f"{HALF}, 0 s"
    assert "best latency 200, bound 100, gap 50.0 %" in line


def test_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch):
    text = shown(monkeypatch, Terminal())
    assert text.startswith(f"{CLEAR}[##########----------] best latency 200, bound 100")
    assert text.endswith(CLEAR)
    assert "\n" not in text


def test_a_bar_before_there_is_a_mapping():
    assert bar(Progress("latency", inf, 0.0, 0.0, 0, 0, 0)) == f"[{'-' * 20}]"


def test_ctrl_c_gives_the_best_mapping_and_its_proof(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(graph_text("gemm_softmax", (384, 512, 1536)))
    (tmp_path / "few.yaml").write_text("{stream: false, pad: none}")
    flags = [str(tmp_path / "in.mlir"), "--hardware", "samples/hardware/edge.yaml"]
    flags += ["--constraints", str(tmp_path / "few.yaml"), "--json"]
    flags += ["--certificate", str(tmp_path / "proof.json"), str(tmp_path / "seconds")]
    with subprocess.Popen(
        [sys.executable, "-c", EXPLORE, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as search:
        assert search.stderr is not None
        while "best latency inf" in search.stderr.readline():
            pass
        search.send_signal(signal.SIGINT)
        out, err = search.communicate(timeout=60)
    assert search.returncode == 0, err
    figures = json.loads(out)
    assert figures["latency_cycles"] > figures["lower_bound"] > 0
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["lower_bound"] == figures["lower_bound"]
    assert proof["value"] == figures["latency_cycles"]
    # Of the processor: how busy the machine is does not matter.
    assert 0 < float((tmp_path / "seconds").read_text()) < 3


@pytest.mark.parametrize(
    ("interrupted", "sentence"),
    [
        ("tools.exploring.question_of", NOT_ANSWERED),
        ("passes.explore.space.StructureSpace.default", NOT_ANSWERED),
        ("api.answer.Answer.mlir", NOT_WRITTEN),
    ],
)
def test_ctrl_c_without_an_answer_says_how_to_go_on(
    interrupted: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"comet.{interrupted}", interrupt)
    program = tmp_path / "in.mlir"
    program.write_text(graph_text("gemm", (8, 8, 32)))
    flags = ["--hardware", "samples/hardware/edge.yaml", "--tolerance", "0.99"]
    flags += ["--output", str(tmp_path / "out.mlir")]
    with pytest.raises(SystemExit, match="130"):
        comet_explore.main([str(program), *flags])
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"comet-explore: {sentence}"


def test_ctrl_c_in_a_batch_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("comet.tools.batching.print_batch", interrupt)
    with pytest.raises(SystemExit, match="130"):
        comet_explore.main(["--batch", "layers.yaml"])
    assert capsys.readouterr().err == f"comet-explore: {NOT_ALL}\n"


def test_a_search_without_a_bound_says_so():
    unbounded = replace(HALF, lower_bound=0.0, gap=1.0)
    assert str(unbounded) == "best latency 200, no bound, 1 of 4 structures closed"


def test_a_search_without_a_mapping_says_so():
    empty = replace(HALF, best=inf, gap=0.0)
    assert str(empty) == "no mapping yet, bound 100, 1 of 4 structures closed"
