"""Answers that are kept in a file: what they answer, and who may share the file."""

import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from covering import exhaustive
from programs import graph_text
from torch_python import run_python

from comet.api.answer import Answer
from comet.api.exploring import explore
from comet.api.question import Question, Sampling
from comet.api.source import Source
from comet.api.versions import digest_of, publishers, source_digest
from comet.batch import store as store_module
from comet.batch.store import Store, digest, is_finished, recalled
from comet.tools.comet_explore import main
from comet.tools.diagnostics import UsageError

EDGE = Source.read("samples/hardware/edge.yaml")
FEW = Source('stream: false\nstrategy: full\ndim: ["N:cx,cy,kx,ky"]\n', "few.yaml")
QUESTION = Question(Source(graph_text("gemm", (8, 4, 32)), "in.mlir"), EDGE, FEW)

KEEP_MANY = """
import sys
from dataclasses import replace
from pathlib import Path
from comet.batch.store import Store
from test_store import QUESTION
store = Store(Path(sys.argv[1]))
answer = store.find(QUESTION)
assert answer is not None
for number in range(6):
    question = replace(QUESTION, tolerance=(2 * number + int(sys.argv[2])) / 100)
    store.keep(question, answer)
    assert store.find(question) is not None
"""


@pytest.fixture(scope="module")
def answer() -> Answer:
    return explore(QUESTION)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "answers.db")


def unfinished(answer: Answer, seconds: float) -> Answer:
    return replace(answer, proven=False, gap_percent=10.0, seconds=seconds)


def test_a_kept_answer_is_the_same(store: Store, answer: Answer):
    assert store.find(QUESTION) is None
    store.keep(QUESTION, answer)
    found = store.find(QUESTION)
    assert found is not None
    assert found.to_json() == answer.to_json()
    assert found.mlir() == answer.mlir()
    assert found.certificate() == answer.certificate()


def test_a_question_is_searched_once(store: Store, monkeypatch: pytest.MonkeyPatch):
    first = recalled(QUESTION, store)

    def fail(*_: object) -> NoReturn:
        raise AssertionError("searched again")

    monkeypatch.setattr(store_module, "explore", fail)
    assert recalled(replace(QUESTION, time_limit=1e4), store).mlir() == first.mlir()


def other_questions() -> Iterator[Question]:
    longer = Source(QUESTION.program.text + "\n", "in.mlir")
    yield replace(QUESTION, program=longer)
    yield replace(QUESTION, hardware=replace(EDGE, name="other.yaml"))
    yield replace(QUESTION, hardware=replace(EDGE, text=EDGE.text + "\n"))
    yield replace(QUESTION, constraints=Source("", "few.yaml"))
    yield replace(QUESTION, model="ideal")
    yield replace(QUESTION, objective="edp")
    yield replace(QUESTION, tolerance=0.1)
    yield replace(QUESTION, sampling=Sampling())
    yield replace(QUESTION, sampling=Sampling(seed=1))


def test_what_makes_another_question():
    digests = [digest(each) for each in (QUESTION, *other_questions())]
    assert len({*digests}) == len(digests)
    elsewhere = replace(EDGE, name="/elsewhere/edge.yaml")
    same = replace(QUESTION, hardware=elsewhere, time_limit=1.0)
    assert digest(same) == digest(QUESTION)


def test_another_source_makes_another_question(
    store: Store, answer: Answer, monkeypatch: pytest.MonkeyPatch
):
    """What an older cost model or pass has found is not the answer any more."""
    store.keep(QUESTION, answer)
    monkeypatch.setattr(store_module, "source_digest", lambda: "other")
    assert store.find(QUESTION) is None


def test_the_source_is_names_and_texts_of_files(tmp_path: Path):
    (tmp_path / "price.py").write_text("RATE = 1\n")
    (tmp_path / "notes.txt").write_text("x")
    first = digest_of([tmp_path])
    (tmp_path / "notes.txt").write_text("y")
    assert digest_of([tmp_path]) == first
    (tmp_path / "price.py").write_text("RATE = 2\n")
    changed = digest_of([tmp_path])
    (tmp_path / "price.py").rename(tmp_path / "cost.py")
    assert len({first, changed, digest_of([tmp_path])}) == 3
    assert source_digest() == source_digest() != digest_of([])


def test_the_digest_depends_on_packages_that_publish_ops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    info = tmp_path / "my_ops-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-ops\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[xdsl.universe]\nmy_ops = my_ops:MINE\n")
    module = tmp_path / "my_ops.py"
    module.write_text("MINE = None\n")
    first = source_digest.__wrapped__()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "my_ops" in publishers()
    found = source_digest.__wrapped__()
    module.write_text("MINE = 1\n")
    assert len({first, found, source_digest.__wrapped__()}) == 3


def test_the_pipeline_names_the_file_of_the_question(store: Store, answer: Answer):
    store.keep(QUESTION, answer)
    elsewhere = replace(EDGE, name="/elsewhere/edge.yaml")
    found = store.find(replace(QUESTION, hardware=elsewhere))
    assert found is not None
    assert 'attach-hardware{path="/elsewhere/edge.yaml"}' in found.pipeline


def test_an_unfinished_search_answers_what_allows_no_more_time(
    store: Store, answer: Answer
):
    store.keep(QUESTION, unfinished(answer, 10.0))
    assert store.find(replace(QUESTION, time_limit=10.0)) is not None
    assert store.find(replace(QUESTION, time_limit=11.0)) is None


def test_the_better_search_is_kept(store: Store, answer: Answer):
    for seconds, kept in ((10.0, 10.0), (5.0, 10.0), (20.0, 20.0)):
        store.keep(QUESTION, unfinished(answer, seconds))
        found = store.find(replace(QUESTION, time_limit=1.0))
        assert found is not None
        assert found.seconds == kept
    store.keep(QUESTION, answer)
    store.keep(QUESTION, unfinished(answer, 30.0))
    assert store.find(QUESTION) is not None


def test_a_gap_below_the_tolerance_is_finished(answer: Answer):
    near = unfinished(answer, 1.0)
    assert not is_finished(QUESTION, near)
    assert is_finished(replace(QUESTION, tolerance=0.1), near)


@exhaustive
def test_two_processes_share_a_file(store: Store, answer: Answer):
    store.keep(QUESTION, answer)
    folders = [str(Path(__file__).parent), "tests/support"]
    code = f"import sys; sys.path[:0] = {folders}\n{KEEP_MANY}"
    with ThreadPoolExecutor(2) as both:
        commands = (["-c", code, store.path, str(number)] for number in range(2))
        running = list(both.map(run_python, commands))
    assert [process.returncode for process in running] == [0, 0], running
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (12,)
    connection.close()


@pytest.mark.parametrize("name", ["text.db", "none/answers.db"])
def test_a_file_that_is_no_store(tmp_path: Path, name: str):
    (tmp_path / "text.db").write_text(
        "no database at all, but long enough to tell\n" * 9
    )
    with pytest.raises(UsageError, match=r"answers cannot be kept here \(.*\); name a"):
        Store(tmp_path / name).find(QUESTION)


def test_the_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, source in (("in.mlir", QUESTION.program), ("few.yaml", FEW)):
        (tmp_path / name).write_text(source.text)
    flags = [str(tmp_path / "in.mlir"), "--hardware", EDGE.name, "--json"]
    flags += ["--constraints", str(tmp_path / "few.yaml")]
    texts: list[str] = []
    for _ in range(2):
        main([*flags, "--store", str(tmp_path / "answers.db")])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]  # the seconds, too
