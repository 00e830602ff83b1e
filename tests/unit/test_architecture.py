"""The page on the architecture: its commands run, and its table names what there is."""

import ast
import re
from functools import cache

import pytest
from paths import ROOT
from shown_pages import Shown, flat, page, pattern, run_all

from comet.passes import PASSES

PAGE = page("architecture.md")
DECISIONS = re.findall(
    r"^\| ([^|]+\?) \| `([^`]+)` \| `([\w/.]+)` \| `([\w.]+)` \|$", PAGE.text, re.M
)
"""Question, word, file and function of each row of the table."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all commands in order; return what each wrote."""
    return run_all(PAGE.commands, tmp_path_factory.mktemp("architecture"))


def test_every_command_shows_what_it_does():
    assert [shown.command for shown in PAGE.shown] == PAGE.commands
    assert len(PAGE.commands) >= 10


@pytest.mark.parametrize("shown", PAGE.shown, ids=range(len(PAGE.shown)))
def test_it_writes_what_is_shown(shown: Shown, outputs: dict[str, str]):
    written = flat(outputs[shown.command])
    assert pattern(shown.text).fullmatch(written), written


@pytest.mark.parametrize("sample", ["gemm_softmax", "ag_gemm"])
def test_the_samples_are_shown_whole(sample: str):
    (text,) = (text for kind, text in PAGE.blocks if kind == f"mlir sample {sample}")
    assert (ROOT / "samples" / f"{sample}.mlir").read_text().endswith(text)


def test_the_table_answers_the_ten_questions():
    assert len({question for question, *_ in DECISIONS}) == len(DECISIONS) >= 10


@cache
def sources() -> dict[str, str]:
    """Return the text of the folders where decisions are, in lower case, by file."""
    folders = (ROOT / name for name in ("dialects", "passes", "cost", "codegen"))
    files = (file for folder in folders for file in folder.rglob("*.py"))
    return {str(f.relative_to(ROOT)): f.read_text().lower() for f in files}


def having(word: str) -> list[str]:
    """Return the files that a grep for words finds."""
    return [file for file, text in sources().items() if word.lower() in text]


def test_the_picture_has_every_pass():
    picture = PAGE.text.partition("```mermaid")[2].partition("```")[0]
    pipelines = {"comet-accelerator", "triton-distributed"}
    missing = PASSES.keys() - pipelines - set(re.findall(r"[a-z][a-z0-9-]+", picture))
    assert not missing


@pytest.mark.parametrize(("word", "file", "function"), [row[1:] for row in DECISIONS])
def test_the_decision_is_found_by_its_word(word: str, file: str, function: str):
    text = (ROOT / file).read_text()
    assert file in having(word)
    assert len(having(word)) <= 8
    owner, _, name = function.rpartition(".")
    found = [
        node.name
        for scope in ast.walk(ast.parse(text))
        if isinstance(scope, ast.ClassDef if owner else ast.Module)
        and (not owner or getattr(scope, "name", "") == owner)
        for node in scope.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert name in found
