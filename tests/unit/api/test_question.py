"""A search as a function: typed questions and answers, and its errors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from accelerators import edge_like
from programs import graph_text
from semantics import parse_module

import comet
from comet.api.answer import Answer, Progress
from comet.api.exploring import explore
from comet.api.question import Question
from comet.api.source import Source
from comet.codegen.comet import write_files
from comet.passes.explore.certificate import read_certificate
from comet.passes.explore.search import Exploration
from comet.tools.diagnostics import CometError, UsageError

EDGE = Source.read("samples/hardware/edge.yaml")
NO_START = Source("factors: 'c_dram: M=2'\n", "few.yaml")
"""Constraints that no mapping of the quick search is known to meet."""
FEW = Source('stream: false\nstrategy: full\ndim: ["N:cx,cy,kx,ky"]\n', "few.yaml")
QUESTION = Question(Source(graph_text("gemm", (8, 4, 32)), "in.mlir"), EDGE, FEW)


@pytest.fixture(scope="module")
def notes() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def answer(notes: list[Progress]) -> Answer:
    return explore(QUESTION, notes.append)


def test_the_figures_are_attributes_and_json(answer: Answer):
    figures = answer.to_json()
    assert json.loads(json.dumps(figures)) == figures
    assert figures["edp"] == answer.latency_cycles * answer.energy_pj
    assert figures["pruned"] == answer.space_size - answer.evaluated
    assert sum(answer.closed_by.values()) == answer.structures_closed
    assert answer.proven
    assert f"{answer.latency_cycles:,.0f} cycles" in str(answer)


def test_what_was_not_priced_is_said_with_its_bound(answer: Answer):
    assert answer.closed_by == {"search of parts": 1}
    assert list(answer.pruned_by) == [
        "an order of loops that reuses as much",
        "lower bound of the tile tree",
    ]
    assert "structures closed by search of parts 1\n" in str(answer)
    assert answer.bound_of_unreached is None


def test_structures_are_closed_and_rejected_for_reasons():
    every = Source(
        "{stream: false, pad: none, dim: ['K:cx,cy', 'N:cx,cy', '']}", "e.yaml"
    )
    answer = explore(replace(QUESTION, constraints=every))
    assert answer.proven
    assert sum(answer.rejected_by.values()) == answer.structures_rejected > 0
    assert sum(answer.closed_by.values()) == answer.structures_closed
    assert answer.closed_by.keys() - {"search of parts"}


def test_progress_ends_with_the_answer(answer: Answer, notes: list[Progress]):
    last = notes[-1]
    assert (last.best, last.gap) == (answer.latency_cycles, 0.0)
    assert (last.closed, last.evaluated) == (1, answer.evaluated)
    assert "gap 0.0 %, 1 of 1 structures closed" in str(last)


def test_what_an_answer_writes(answer: Answer, tmp_path: Path):
    answer.emit(tmp_path / "out")
    found = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert found == write_files(answer.module)
    assert write_files(parse_module(answer.mlir())) == found
    assert read_certificate(answer.certificate(), "proof.json") == answer.proof


def test_the_start_says_why_there_is_no_mapping_yet(monkeypatch: pytest.MonkeyPatch):
    """The first structure may lack one for a reason of its own."""

    def run(search: Exploration) -> None:
        search.refused = "nothing fits"
        search.space.rejected["kind=gather"] = "the files have no gather"

    monkeypatch.setattr(Exploration, "run", run)
    with pytest.raises(CometError, match=r"or fewer constraints; so far nothing fits$"):
        explore(QUESTION)


def test_a_folder_that_is_a_file_is_an_error(answer: Answer, tmp_path: Path):
    (tmp_path / "out").write_text("")
    with pytest.raises(CometError, match=r"target comet: cannot write into .*out"):
        answer.emit(tmp_path / "out")


def test_a_mesh_of_any_shape_is_priced_and_files_use_one_that_the_tool_knows(
    tmp_path: Path,
):
    hardware = Source.read(edge_like((4, 2), (2, 2)))
    whole = Source(f"{FEW.text}mesh: whole\n", "few.yaml")
    answer = explore(replace(QUESTION, hardware=hardware, constraints=whole))
    assert answer.proven
    (sentence,) = answer.emit(tmp_path)
    assert sentence == (
        "4 of the 8 instances of GB are used, as the COMET tool knows no mesh of 4 by 2"
    )
    assert (tmp_path / "arch.yaml").read_text().startswith(f"# {sentence}\n")
    assert comet.cost(tmp_path, model="tool").latency > 0
    with pytest.raises(CometError, match="8 instances of GB lie on a mesh of 4 by 2"):
        comet.compile(answer.mlir(), pipeline="").emit("comet")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            replace(QUESTION, program=Source("func.func", "in.mlir")),
            "in.mlir:1:10: error: expect",
        ),
        (
            replace(QUESTION, hardware=Source("a: b", "edge.yaml")),
            "edge.yaml:1: unknown field 'a'",
        ),
        (
            replace(QUESTION, constraints=Source("a: b", "few.yaml")),
            "few.yaml:1: there is no constraint 'a'",
        ),
        (
            replace(QUESTION, time_limit=1e-9, constraints=NO_START),
            "no valid mapping was found in 1e-09 s; give a longer time limit",
        ),
    ],
)
def test_mistakes_are_one_sentence(question: Question, message: str):
    with pytest.raises(CometError) as error:
        explore(question)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model", "exact", "there is no model 'exact' here; choose from "),
        ("objective", "area", "there is no objective 'area' here; choose from"),
        ("time_limit", 0.0, "the time limit is a positive number of seconds"),
        ("tolerance", 1.0, "the tolerance is a fraction from 0 to below 1"),
    ],
)
def test_mistakes_in_a_question(field: str, value: str | float, message: str):
    with pytest.raises(UsageError, match=message):
        replace(QUESTION, **{field: value})


def test_a_file_that_is_no_text(tmp_path: Path):
    (tmp_path / "in.mlir").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"in\.mlir: the file is not UTF-8 text"):
        Source.read(tmp_path / "in.mlir")
