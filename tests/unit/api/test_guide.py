"""docs/python.md and the notebook: their code runs, and prints what is shown."""

import ast
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from covering import exhaustive
from paths import ROOT
from shown_pages import page, pattern
from torch_python import run_python

PAGE = page("python.md")
NOTEBOOK = ROOT / "docs" / "notebooks" / "explore.ipynb"

RUN = """
import contextlib, io, json, sys

names, printed = {}, []
for code in json.load(open(sys.argv[1])):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
"""Executes pieces of code after each other, and prints what each printed."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what the blocks of the page print, all run in one process."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "samples").symlink_to(ROOT / "samples")
    blocks = [text for kind, text in PAGE.blocks if kind == "python"]
    file = folder / "blocks.json"
    file.write_text(json.dumps(blocks))
    done = run_python(["-c", RUN, file], folder=folder)
    assert done.returncode == 0, done.stderr
    return dict(zip(blocks, json.loads(done.stdout), strict=True))


def test_the_page_shows_what_its_code_prints(printed: dict[str, str]):
    shown = [
        (code, text)
        for (first, code), (second, text) in pairwise(PAGE.blocks)
        if (first, second) == ("python", "text")
    ]
    assert len(shown) == len(printed)
    for code, text in shown:
        assert pattern(text).fullmatch(printed[code]), printed[code]


IN_THE_NOTEBOOK = (
    "gap 0.00 %, proven",
    "true; model paper",
    "the best mapping has the value",
    "tl.load(a_ptr",
)
"""What its cells print or show."""


def test_the_notebook_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its cells do, without Jupyter, and show the values of their expressions."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells), "clear its outputs"
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "displayhook", print)
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            statements = ast.Interactive(ast.parse("".join(cell["source"])).body)
            exec(compile(statements, NOTEBOOK, "single"), names)
    printed = capsys.readouterr().out
    assert [text for text in IN_THE_NOTEBOOK if text not in printed] == []


@exhaustive
def test_jupyter_runs_the_notebook(tmp_path: Path):
    out = tmp_path / "out.ipynb"
    tool = Path(sys.executable).with_name("jupyter-execute")
    done = subprocess.run(
        [tool, NOTEBOOK, f"--output={out}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert text.count('"image/png"') == 2
    assert "structures closed" in text
    assert [each for each in IN_THE_NOTEBOOK if each not in text] == []
