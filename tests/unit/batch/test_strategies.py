"""The strategies of one program side by side."""

import csv
import json
from pathlib import Path

import pytest
from covering import exhaustive
from programs import graph_text

from comet.tools.comet_explore import main

EDGE = "samples/hardware/edge.yaml"


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    (tmp_path / "in.mlir").write_text(graph_text("gemm_softmax", (8, 8, 32)))
    (tmp_path / "few.yaml").write_text(
        "{stream: false, pad: none, dim: 'M:kx,ky', strategy: [none, full]}"
    )
    found = [str(tmp_path / "in.mlir"), "--hardware", EDGE, "--jobs", "1"]
    found += ["--constraints", str(tmp_path / "few.yaml"), "--compare-strategies"]
    return [*found, "--tolerance", "0.9", "--store", str(tmp_path / "answers.db")]


@exhaustive
def test_every_strategy(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    files = ["--csv", str(tmp_path / "s.csv"), "--plot", str(tmp_path / "s.svg")]
    with pytest.raises(SystemExit, match="0"):
        main([*flags, *files])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["strategy", "objective", "cycles"]
    with pytest.raises(SystemExit, match="0"):
        main([*flags, "--json"])
    answers = json.loads(capsys.readouterr().out)
    names = [answer["strategy"] for answer in answers]
    assert names == ["none", "full"]
    assert [line.split()[0].rstrip(":") for line in lines] == names
    for answer in answers:
        assert f"fuse{{strategy={answer['strategy']} " in answer["pipeline"]
    with (tmp_path / "s.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [float(row["latency_cycles"]) for row in rows] == [
        answer["latency_cycles"] for answer in answers
    ]
    drawn = (tmp_path / "s.svg").read_text()
    assert drawn.count("<!-- latency -->") == 1
    assert all(f"<!-- {name} -->" in drawn for name in names)


@pytest.mark.parametrize("name", ["none.xyz", "none"])
def test_a_plot_is_in_a_known_format(
    flags: list[str], capsys: pytest.CaptureFixture[str], name: str
):
    with pytest.raises(SystemExit, match="1"):
        main([*flags, "--plot", name])
    out, err = capsys.readouterr()
    assert not out  # said before any search
    assert f"--plot {name}: no image format has this ending" in err


def test_flags_of_the_comparison_alone(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["in.mlir", "--hardware", EDGE, "--csv", "out.csv"])
    assert (
        "--csv writes what --compare-strategies finds; leave it out"
        in capsys.readouterr().err
    )
