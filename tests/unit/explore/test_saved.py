"""A saved mapping as the start of a search, and as its constraints."""

import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
import yaml
from programs import graph_text

from comet.api.saved import saved_constraints
from comet.api.source import Source
from comet.tools.comet_explore import main

EDGE = "samples/hardware/edge.yaml"
FEW = """stream: false
strategy: full
dim: "N:cx,cy;M:kx,ky"
kind: allreduce
pad: none
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program, and its best mapping under some constraints."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "in.mlir").write_text(graph_text("gemm_softmax", (16, 16, 64)))
    (folder / "few.yaml").write_text(FEW)
    flags = ["--hardware", EDGE, "--constraints", str(folder / "few.yaml"), "--json"]
    with redirect_stdout(StringIO()) as out:
        main([str(folder / "in.mlir"), *flags, "--output", str(folder / "best.mlir")])
    (folder / "best.json").write_text(out.getvalue())
    return folder


def first_answer(folder: Path) -> dict[str, object]:
    """Return what was printed of the best mapping."""
    return json.loads((folder / "best.json").read_text())


def explored(
    capsys: pytest.CaptureFixture[str], folder: Path, *flags: str
) -> dict[str, object]:
    main([str(folder / "in.mlir"), "--hardware", EDGE, "--json", *flags])
    return cast(dict[str, object], json.loads(capsys.readouterr().out))


def test_constraints_are_what_its_passes_say(folder: Path):
    found = saved_constraints(Source.read(folder / "best.mlir"))
    values = yaml.safe_load(found.text)
    assert {key: values[key] for key in values if key != "factors"} == {
        **yaml.safe_load(FEW),
        "mesh": "whole",
        "at": "GB",
        "chunks": "shared",
        "loops": "shared",
    }
    assert re.match(r"\w+: [MNK]=\d", values["factors"])


def test_the_text_of_a_mapping_is_a_file_of_constraints(folder: Path):
    file = Source.read(folder / "best.mlir")
    as_text = saved_constraints(replace(file, name="<text>"))
    assert as_text == replace(saved_constraints(file), name="<text>")


def test_padding_is_a_constraint():
    passes = 'decompose,pad{to=\\"M=16,N=8\\"},fuse{strategy=full},tile{factors=\\"\\"}'
    module = f'builtin.module attributes {{comet.pipeline = "{passes}"}} {{}}'
    found = saved_constraints(Source(module, "best.mlir"))
    assert yaml.safe_load(found.text)["pad"] == "M=16,N=8"


def test_as_constraints_it_leaves_one_structure(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    first = first_answer(folder)
    again = explored(capsys, folder, "--constraints", str(folder / "best.mlir"))
    assert again["structures"] == 1
    assert again["proven"]
    assert again["latency_cycles"] == first["latency_cycles"]
    assert cast(int, again["space_size"]) < cast(int, first["space_size"])


def test_a_search_starts_from_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    proof = tmp_path / "proof.json"
    flags = ["--start", str(folder / "best.mlir"), "--certificate", str(proof)]
    found = explored(capsys, folder, *flags, "--time-limit", "1e-9")
    first = first_answer(folder)
    assert found["latency_cycles"] == first["latency_cycles"]
    assert found["mapping"] == "the start"
    assert not found["proven"]
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out


def test_a_search_starts_from_a_mapping_that_was_lowered_for_a_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    text = (folder / "best.mlir").read_text()
    lowered = "lower-to-comet{model=paper},annotate-cost{model=paper}"
    changed, count = re.subn(r"annotate-cost\{[^}]*\},lower-to-comet", lowered, text)
    assert count == 1
    (folder / "lowered.mlir").write_text(changed)
    flags = ["--start", str(folder / "lowered.mlir"), "--time-limit", "1e-9"]
    found = explored(capsys, folder, *flags)
    assert found["latency_cycles"] == first_answer(folder)["latency_cycles"]
    assert found["mapping"] == "the start"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--start", "in.mlir"], "in.mlir: there is no 'comet.pipeline' in it"),
        (["--constraints", "in.mlir"], "in.mlir: there is no 'comet.pipeline' in it"),
        (
            ["--start", "best.mlir", "--constraints", "few.yaml"],
            "a start may be outside of the constraints",
        ),
        (
            ["--start", "best.mlir", "--compare-strategies"],
            "--start is a mapping of one question",
        ),
        (["--start", "broken.mlir"], "broken.mlir: 'comet.pipeline': "),
        (["--constraints", "part.mlir"], "part.mlir: 'comet.pipeline' maps nothing"),
        (["--start", "other.mlir"], "do not map this program on this hardware: "),
    ],
)
def test_mistakes(
    folder: Path,
    flags: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
):
    text = (folder / "best.mlir").read_text()
    (folder / "broken.mlir").write_text(text.replace("decompose{", "attach-hardware{"))
    (folder / "part.mlir").write_text(re.sub("fuse{.*tile{", "tile{", text))
    other = text.replace("dim=N ", "dim=Q ")
    (folder / "other.mlir").write_text(other)
    named = [str(folder / flag) if "." in flag else flag for flag in flags]
    with pytest.raises(SystemExit):
        main([str(folder / "in.mlir"), "--hardware", EDGE, "--time-limit", "2", *named])
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
