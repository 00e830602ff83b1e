"""comet-explore --model tool: proofs by enumeration, artifacts, files and errors."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from covering import exhaustive
from programs import graph_text
from semantics import parse_module, run_passes

from comet.cost.from_ir.mapping import estimate_module
from comet.tools.comet_explore import main

EDGE = "samples/hardware/edge.yaml"
FEW = """stream: false
strategy: full
dim: ['N:cx,cy,kx,ky', 'N:kx,ky']
pad: none
loops: shared
"""

Fields = dict[str, Any]


def run(*flags: str) -> str:
    with redirect_stdout(StringIO()) as out:
        main([*flags])
    return out.getvalue()


def explored(program: Path, *flags: str) -> Fields:
    asked = (str(program), f"--hardware={EDGE}", "--model=tool", "--json", *flags)
    return json.loads(run(*asked))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "in.mlir"
    path.write_text(graph_text("gemm", (1, 2, 16)))
    return path


@pytest.fixture
def few(tmp_path: Path) -> str:
    path = tmp_path / "few.yaml"
    path.write_text(FEW)
    return f"--constraints={path}"


@exhaustive
def test_a_small_space_is_proven_by_enumeration(
    program: Path, few: str, tmp_path: Path
):
    proof, out = tmp_path / "p.json", tmp_path / "out"
    found = explored(program, few, f"--certificate={proof}", f"--emit={out}")
    assert found["proven"]
    assert found["lower_bound"] == found["latency_cycles"]
    assert found["gap_percent"] == 0
    assert not found["artifact"]
    assert {path.suffix for path in out.iterdir()} == {".yaml"}
    made = run_passes(parse_module(program.read_text()), found["pipeline"])
    assert estimate_module(made, "tool").latency == found["latency_cycles"]
    assert "true; model tool, latency" in run(f"--verify={proof}")


@exhaustive
def test_a_mapping_that_is_not_the_best_is_refused(
    program: Path, few: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    slow, proof = tmp_path / "slow.yaml", tmp_path / "p.json"
    slow.write_text(FEW + "factors: 'y_dram: N=1; y_gb: N=1; y_ob: K=2'\n")
    explored(program, few, f"--certificate={proof}")
    fields = json.loads(proof.read_text())
    explored(program, f"--constraints={slow}", f"--certificate={proof}")
    other = json.loads(proof.read_text())
    assert other["value"] > fields["value"]
    fields |= {key: other[key] for key in ("pipeline", "value", "lower_bound")}
    for claim in fields["claims"]:
        claim["bound"] = other["value"]
    proof.write_text(json.dumps(fields))
    with pytest.raises(SystemExit):
        main([f"--verify={proof}"])
    assert "it has a mapping below" in capsys.readouterr().err


@exhaustive
def test_what_is_not_priced_is_said(program: Path, tmp_path: Path):
    """Without constraints the space is too large to price all of it in a moment."""
    proof, page = tmp_path / "p.json", tmp_path / "r.html"
    found = explored(
        program, "--time-limit=1e-9", f"--certificate={proof}", f"--report={page}"
    )
    assert found["lower_bound"] is None
    assert found["gap_percent"] is None
    assert not found["proven"]
    assert found["latency_cycles"] > 0
    assert "nothing is said of other mappings" in run(f"--verify={proof}")
    text = page.read_text()
    assert "latency by the model tool, cycles" in text
    assert f"{found['latency_cycles']:,.0f}" in text


def test_artifacts_are_flagged_and_not_preferred(program: Path, tmp_path: Path):
    program.write_text(graph_text("gemm", (1, 128, 1024)))
    limits = tmp_path / "row.yaml"
    limits.write_text(
        "stream: false\nstrategy: full\ndim: N\npad: none\nloops: shared\n"
        'factors: "y_dram: M=1 K=1; y_gb: M=1 K=1; y_ob: M=1 K=1"\n'
    )
    proof, given = tmp_path / "p.json", f"--constraints={limits}"
    preferred = explored(program, given)
    artifact = explored(program, given, "--allow-artifacts", f"--certificate={proof}")
    assert preferred["proven"]
    assert artifact["proven"]
    assert not preferred["artifact"]
    assert artifact["artifact"]
    assert artifact["latency_cycles"] < preferred["latency_cycles"]
    assert "true; model tool" in run(f"--verify={proof}")
    flags = ("--model=tool", "--allow-artifacts", given)
    said = run(str(program), f"--hardware={EDGE}", *flags)
    assert "impossible: the root memory alone takes 10,496 cycles" in said


@exhaustive
def test_samples_and_batches(program: Path, tmp_path: Path):
    found = explored(program, "--sampler=tpe", "--samples=5", "--time-limit=20")
    assert found["lower_bound"] is None
    layers = tmp_path / "layers.yaml"
    layers.write_text("- {program: in.mlir, model: tool, constraints: few.yaml}\n")
    (tmp_path / "few.yaml").write_text(FEW)
    with pytest.raises(SystemExit, match="0"), redirect_stdout(StringIO()) as out:
        main([f"--batch={layers}", f"--hardware={EDGE}", "--jobs=1"])
    assert "latency (tool)" in out.getvalue()


def test_other_models_have_no_artifacts(
    program: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        main([str(program), f"--hardware={EDGE}", "--allow-artifacts"])
    assert "the model paper has no artifacts to allow" in capsys.readouterr().err
