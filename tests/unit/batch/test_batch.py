"""Many questions at once: their file, the processes, and the flags."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace
from typing import NoReturn, Protocol, cast

import pytest
from covering import exhaustive
from programs import graph_text

from comet.api.answer import Answer
from comet.api.question import Question
from comet.api.source import Source
from comet.batch import answering, engines
from comet.batch.answering import Result, results
from comet.batch.engines import Engine
from comet.batch.layers import read_layers
from comet.batch.store import Store
from comet.tools import extras
from comet.tools.comet_explore import main
from comet.tools.diagnostics import UsageError

EDGE = Source.read("samples/hardware/edge.yaml")
FEW = Source('{stream: false, strategy: full, dim: ["N:cx,cy,kx,ky"]}', "few.yaml")
GEMM = Question(Source(graph_text("gemm", (8, 4, 32)), "in.mlir"), EDGE, FEW)
WRONG = replace(GEMM, constraints=Source("a: b", "wrong.yaml"))
QUESTIONS = (GEMM, WRONG, replace(GEMM, objective="energy"), GEMM)
ENTRY = "- program: in.mlir\n"
WHOLE = f"{ENTRY}  hardware: edge.yaml\n"


def count_nothing(_answered: int, _questions: int) -> None:
    pass


def texts(found: list[Result]) -> list[object]:
    """Return all that is known about each result, without the seconds."""
    return [
        ({**each.to_json(), "seconds": 0}, each.mlir(), each.certificate())
        if isinstance(each, Answer)
        else str(each)
        for each in found
    ]


@pytest.fixture(scope="module")
def expected() -> list[object]:
    """What one process answers."""
    return texts(results(QUESTIONS, Engine(jobs=1), None, count_nothing))


class Cluster(Protocol):
    scheduler_address: str


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask cluster."""
    made = import_module("distributed").LocalCluster(
        1, threads_per_worker=1, dashboard_address=""
    )
    with cast(AbstractContextManager[Cluster], made) as cluster:
        yield cluster.scheduler_address.removeprefix("tcp://")


def test_one_process(expected: list[object]):
    assert expected[0] == expected[3] != expected[2]
    assert str(expected[1]).startswith("wrong.yaml:1: there is no constraint 'a'")


def test_several_processes_give_the_same_bytes(expected: list[object]):
    found = results(QUESTIONS, Engine(jobs=2), None, count_nothing)
    assert texts(found) == expected


def test_questions_that_differ_in_the_names_of_files_are_searched_once():
    machine = "elsewhere/edge.yaml"
    elsewhere = replace(
        QUESTIONS[0], hardware=replace(QUESTIONS[0].hardware, name=machine)
    )
    counts: list[tuple[int, int]] = []

    def note(answered: int, questions: int) -> None:
        counts.append((answered, questions))

    pair = results([QUESTIONS[0], elsewhere], Engine(jobs=1), None, note)
    assert counts == [(0, 1), (1, 1)]
    first, second = (each for each in pair if isinstance(each, Answer))
    assert first.pipeline != second.pipeline
    assert machine in second.pipeline
    assert first.certificate() == second.certificate()


WAITING = """
from time import sleep
from comet.batch.engines import Engine

def work(seconds):
    print("at work", flush=True)
    sleep(seconds)

if __name__ == "__main__":
    list(Engine(jobs=2).results(work, [60]))
"""


def test_processes_end_with_their_parent(tmp_path: Path):
    """Processes that are left would hold the pipe open."""
    (tmp_path / "waiting.py").write_text(WAITING)
    command = [sys.executable, str(tmp_path / "waiting.py")]
    with Popen(command, stdout=PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"at work\n"
        parent.kill()
        assert parent.communicate(timeout=20) == (b"", None)


def test_a_cluster_without_workers_is_an_error():
    class Client:
        closed = False

        def wait_for_workers(self, n_workers: int, timeout: float) -> None:
            raise TimeoutError(f"{n_workers} not there after {timeout} s")

        def close(self) -> None:
            self.closed = True

    client = Client()
    with pytest.raises(UsageError, match="at 'host:1' has no workers; start them with"):
        engines.check_workers(client, "host:1")
    assert client.closed


@exhaustive
def test_a_dask_cluster_gives_the_same_bytes(scheduler: str, expected: list[object]):
    engine = Engine(f"dask://{scheduler}")
    assert texts(results(QUESTIONS, engine, None, count_nothing)) == expected


def test_an_interrupted_batch_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store, searched = Store(tmp_path / "answers.db"), list[Question]()
    answer = answering.explore(GEMM)

    def interrupted(question: Question, *, keeps_best: bool) -> Answer:
        assert not keeps_best  # Ctrl-C in a search would only end this question
        searched.append(question)
        if len(searched) == 2:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(answering, "explore", interrupted)
    questions = [replace(GEMM, tolerance=each / 10) for each in range(3)]
    with pytest.raises(KeyboardInterrupt):
        results(questions, Engine(jobs=1), store, count_nothing)
    results(questions, Engine(jobs=1), store, count_nothing)
    assert searched == [*questions[:2], *questions[1:]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, source in (("in.mlir", GEMM.program), ("edge.yaml", EDGE)):
        (tmp_path / name).write_text(source.text)
    (tmp_path / "few.yaml").write_text(FEW.text)
    return tmp_path


def test_the_questions_of_a_file(folder: Path):
    path = folder / "layers.yaml"
    path.write_text(
        "- {program: in.mlir, model: ideal, objective: edp, time_limit: 5}\n"
        "- {program: in.mlir, hardware: edge.yaml, tolerance: 0.5, constraints: "
        "few.yaml}\n"
        '- {program: in.mlir, constraints: {stream: false, dim: ["N", ""]}}\n'
    )
    rest = replace(GEMM, objective="energy")
    first, second, third = read_layers(path, EDGE.name, rest)
    program = Source.read(folder / "in.mlir")
    asked = replace(rest, program=program, model="ideal", objective="edp")
    assert first == replace(asked, time_limit=5.0)
    assert second == replace(
        rest,
        program=program,
        hardware=Source.read(folder / "edge.yaml"),
        constraints=Source.read(folder / "few.yaml"),
        tolerance=0.5,
    )
    assert json.loads(third.constraints.text) == {"stream": "false", "dim": ["N", ""]}
    assert third.constraints.name == f"{path}:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program: in.mlir", "layers.yaml:1: a batch is a list of maps with program,"),
        ("[]", "layers.yaml:1: a batch is a list"),
        (WHOLE + "- 5", "layers.yaml:3: an entry is a map with program, hardware"),
        (ENTRY + "  size: 4", "layers.yaml:2: there is no key 'size'; known: program"),
        (ENTRY + "  model: [paper]", "layers.yaml:2: 'model' has a nested value"),
        ("- model: paper", "layers.yaml:1: an entry names its program"),
        (WHOLE + "  model: exact", "layers.yaml:1: there is no model 'exact'"),
        (WHOLE + "  tolerance: 2", "layers.yaml:1: the tolerance is a fraction"),
        (WHOLE + "  time_limit: long", "layers.yaml:3: 'time_limit' is no number: 'lo"),
        (
            "- model: paper\n  program:",
            "layers.yaml:2: 'program' is empty; name a file",
        ),
        ("- program: none.mlir", "layers.yaml:1: 'program': "),
        (WHOLE + "  constraints: bytes", "layers.yaml:3: "),
        (
            WHOLE + "  constraints:\n    dim: N\n    strategy: [full, half]",
            "layers.yaml:5: 'strategy': 'half' is none of full, partial",
        ),
        (
            WHOLE + "  constraints:\n    dim: N\n    stram: false",
            "layers.yaml:5: there is no constraint 'stram'",
        ),
        (WHOLE + "  constraints: [full]", "layers.yaml:3: constraints are a map"),
        (WHOLE + "  constraints: in.mlir", "in.mlir: there is no 'comet.pipeline'"),
        (ENTRY, "layers.yaml:1: name its hardware here, or for all by --hardware"),
    ],
)
def test_mistakes_in_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
):
    (folder / "layers.yaml").write_text(text)
    (folder / "bytes").write_bytes(b"\xff")
    with pytest.raises(SystemExit) as end:
        main(["--batch", str(folder / "layers.yaml")])
    assert end.value.code == 1
    assert f"{folder}/{message}" in capsys.readouterr().err


def test_a_table_and_a_list(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "wrong.yaml").write_text("a: b\n")
    (folder / "layers.yaml").write_text(
        f"{ENTRY}  constraints: few.yaml\n{ENTRY}  constraints: wrong.yaml\n"
    )
    flags = ["--batch", str(folder / "layers.yaml"), "--hardware", EDGE.name]
    flags += ["--store", str(folder / "answers.db"), "--jobs", "1"]
    with pytest.raises(SystemExit, match="1"):
        main(flags)
    out, err = capsys.readouterr()
    head, row, error = out.splitlines()
    assert head.split()[:2] == ["program", "hardware"]
    assert re.match(r"in +edge +latency \(paper\) +[\d,]+ +[\d,]+ +[\d,]+ +0\.00", row)
    assert error.startswith(
        f"in edge: {folder}/wrong.yaml:1: there is no constraint 'a'"
    )
    assert err.splitlines()[-1] == "2 of 2 questions answered"
    with pytest.raises(SystemExit, match="1"):
        main([*flags, "--json"])
    first, second = json.loads(capsys.readouterr().out)
    assert (first["program"], first["proven"]) == (f"{folder}/in.mlir", True)
    assert "there is no constraint 'a'" in second["error"]


def test_what_does_not_go_with_a_batch(capsys: pytest.CaptureFixture[str]):
    for flags, message in (
        (["in.mlir"], "a batch names its programs itself"),
        (["--emit", "out"], "--emit writes the answer to one question"),
    ):
        with pytest.raises(SystemExit):
            main(["--batch", "layers.yaml", *flags])
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "owner"),
    [
        ("--jobs=2", "--batch or --compare-strategies"),
        ("--engine=ray", "--batch or --compare-strategies"),
        ("--seed=7", "--sampler"),
        ("--samples=5", "--sampler"),
    ],
)
def test_flags_that_have_no_effect(
    capsys: pytest.CaptureFixture[str], flag: str, owner: str
):
    with pytest.raises(SystemExit):
        main(["in.mlir", "--hardware", EDGE.name, flag])
    name, _ = flag.split("=")
    message = f"{name} has no effect without {owner}; add that, or leave it out"
    assert message in capsys.readouterr().err


def test_engines_that_are_not_there(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match="there is no engine 'mpi'; choose local, ray"):
        Engine("mpi")
    with pytest.raises(UsageError, match="the number of jobs is positive, or -1"):
        Engine(jobs=0)
    monkeypatch.setattr(engines, "CONNECT", 0.5)
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at '\S+:1';"):
        results([GEMM], Engine("dask://127.0.0.1:1"), None, count_nothing)

    def missing(name: str) -> NoReturn:
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(UsageError, match=r"a batch needs the package joblib; install"):
        results([GEMM], Engine(jobs=1), None, count_nothing)


def test_ray_that_is_missing(monkeypatch: pytest.MonkeyPatch):
    def only_joblib(name: str) -> SimpleNamespace:
        if name != "joblib":
            raise ModuleNotFoundError(name="ray")
        return SimpleNamespace()

    monkeypatch.setattr(extras, "import_module", only_joblib)
    with pytest.raises(UsageError, match=r"needs the package ray; .*compiler\[ray\]'"):
        results([GEMM], Engine("ray"), None, count_nothing)
