"""Certificates: true ones are believed, tampered ones are not."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from programs import graph_text

from comet.api import exploring
from comet.tools.comet_explore import main

EDGE = "samples/hardware/edge.yaml"
FEW = """stream: false
strategy: [full, isolate_contractions]
dim: ["N:cx,cy;M:kx,ky"]
kind: allreduce
loops: shared
"""

Fields = dict[str, Any]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Fields:
    """Return the certificate of a small program with two structures."""
    folder = tmp_path_factory.mktemp("certificate")
    program, few, proof = (folder / name for name in ("in.mlir", "few.yaml", "p.json"))
    program.write_text(graph_text("gemm_softmax", (4, 4, 16)))
    few.write_text(FEW)
    flags = ["--hardware", EDGE, "--constraints", str(few), "--json"]
    main([str(program), *flags, "--certificate", str(proof)])
    return json.loads(proof.read_text())


def check(
    fields: Fields, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    """Return what the checker prints, and its error."""
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(fields))
    capsys.readouterr()
    with suppress(SystemExit):
        main(["--verify", str(path)])
    return capsys.readouterr()


def test_a_true_certificate(
    certificate: Fields, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out, err = check(certificate, tmp_path, capsys)
    assert err == ""
    assert "true; model paper, latency" in out
    assert "(gap 0.00 %), 2 structures" in out
    assert certificate["lower_bound"] == certificate["value"]
    assert any(claim["floors"] for claim in certificate["claims"])


def test_a_certificate_that_is_too_large_has_a_wider_gap(
    certificate: Fields,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    size = len(json.dumps(certificate, indent=1)) - 1
    monkeypatch.setattr(exploring, "MOST_BYTES", size)
    program, few, proof = (
        tmp_path / name for name in ("in.mlir", "few.yaml", "p.json")
    )
    program.write_text(certificate["program"])
    few.write_text(FEW)
    flags = ["--hardware", EDGE, "--constraints", str(few), "--certificate", str(proof)]
    main([str(program), *flags])
    merged = json.loads(proof.read_text())
    assert merged["claims"] == []
    assert merged["value"] == certificate["value"]
    assert 0 < merged["lower_bound"] < certificate["lower_bound"]
    out, err = check(merged, tmp_path, capsys)
    assert err == ""
    assert f"no mapping below {merged['lower_bound']:,.6g} " in out


def missing(fields: Fields) -> None:
    del fields["claims"][1]


def unknown(fields: Fields) -> None:
    fields["claims"].append({"structure": "another", "bound": 1, "floors": []})


def better(fields: Fields) -> None:
    fields["value"] *= 0.9


def raised(fields: Fields) -> None:
    fields["lower_bound"] *= 1.01


def faster(fields: Fields) -> None:
    fields["hardware"] = fields["hardware"].replace("bw: 25", "bw: 50")


def sign(fields: Fields) -> None:
    inputs = [fields[k] for k in ("program", "system", "hardware", "constraints")]
    fields["inputs"] = sha256(json.dumps(inputs).encode()).hexdigest()


def faster_and_signed(fields: Fields) -> None:
    faster(fields)
    sign(fields)


def claim_raised(fields: Fields) -> None:
    fields["claims"][0]["bound"] *= 2


def floor_raised(fields: Fields) -> None:
    for claim in fields["claims"]:
        for floor in claim["floors"]:
            floor["cycles"] += 100


def claim_twice(fields: Fields) -> None:
    fields["claims"].append(fields["claims"][0])


def no_version(fields: Fields) -> None:
    del fields["comet"]


def no_rest(fields: Fields) -> None:
    fields["rest"] = fields["value"]


def no_passes(fields: Fields) -> None:
    fields["pipeline"] = ""


def unlike_constraints(fields: Fields) -> None:
    """The best mapping has another strategy, and no claim is of its structure."""
    fields["constraints"] = FEW.replace("[full, isolate", "[isolate")
    fields["claims"] = [
        claim for claim in fields["claims"] if "=full" not in claim["structure"]
    ]
    sign(fields)


def version(fields: Fields) -> None:
    fields["comet"] = "0.0.0"


def incomplete(fields: Fields) -> None:
    del fields["value"]


def looser(fields: Fields) -> None:
    fields["claims"][0]["bound"] = fields["value"] / 2


def closed_too_early(fields: Fields) -> None:
    """All structures of a form are closed by a bound that they do not have."""
    claim: Fields = {"structure": "stream=false", "bound": fields["value"]}
    fields["claims"] = [{**claim, "floors": []}]


def no_number(fields: Fields) -> None:
    fields["value"] = math.nan


def no_bound(fields: Fields) -> None:
    fields["claims"][1]["bound"] = math.nan


def no_floor(fields: Fields) -> None:
    floors = next(claim["floors"] for claim in fields["claims"] if claim["floors"])
    floors[0]["energy"] = math.inf


def quoted(fields: Fields) -> None:
    fields["rest"] = "7"


def no_claims(fields: Fields) -> None:
    fields["claims"] = [1, 2]


def unknown_model(fields: Fields) -> None:
    fields["model"] = "other"


def other_machine(fields: Fields) -> None:
    fast = 'attach-hardware{path="samples/hardware/cloud.yaml"}'
    fields["pipeline"] = f"{fast},{fields['pipeline']}"


def broken_pipeline(fields: Fields) -> None:
    fields["pipeline"] += ",tile{"


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (missing, "is missing"),
        (unknown, "there is no structure another"),
        (better, "the best mapping has the value"),
        (raised, "the claims give"),
        (faster, "hardware or constraints are not those that it was made with"),
        (faster_and_signed, "the best mapping has the value"),
        (claim_raised, "more than the best mapping has"),
        (claim_twice, "is there twice"),
        (floor_raised, "a nest adds less than"),
        (unlike_constraints, "does not meet the constraint 'strategy'"),
        (no_rest, "of the structures without a claim: that of the program is"),
        (no_passes, "the pipeline makes no mapping"),
        (no_version, "it has no 'format' or no 'comet'"),
        (version, "which checks its own only"),
        (incomplete, "this is no certificate ('value' is no finite number)"),
        (looser, "the claims give"),
        (closed_too_early, "the claim for stream=false: its bound is"),
        (no_number, "'value' is no finite number"),
        (no_bound, "'bound' is no finite number"),
        (no_floor, "'energy' is no finite number"),
        (quoted, "'rest' is no finite number"),
        (no_claims, "it is no JSON object"),
        (unknown_model, "'model' is none of tool, paper, ideal"),
        (other_machine, "the pipeline has to map the program"),
        (broken_pipeline, "the pipeline has to map the program"),
    ],
)
def test_a_tampered_certificate(
    certificate: Fields,
    tamper: Callable[[Fields], None],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    fields: Fields = json.loads(json.dumps(certificate))
    tamper(fields)
    out, err = check(fields, tmp_path, capsys)
    assert out == ""
    assert message in err
    assert err.startswith(f"comet-explore: error: {tmp_path / 'proof.json'}: ")
    assert err.count("\n") == 1


def test_a_mapping_that_is_not_the_best_is_no_proof(
    certificate: Fields, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fields: Fields = json.loads(json.dumps(certificate))
    before, after = fields["pipeline"].split("fuse{strategy=full")
    chunks, tiled = after.split("tile{factors=")
    fields["pipeline"] = (
        f"{before}fuse{{strategy=isolate_contractions{chunks}"
        f'tile{{factors=""{tiled[tiled.index(" model") :]}'
    )
    _, err = check(fields, tmp_path, capsys)
    value = float(err.split("has the value ")[1].split(",")[0])
    assert value > certificate["value"]
    fields["value"] = fields["lower_bound"] = value
    for claim in fields["claims"]:
        claim["bound"] = value
    out, err = check(fields, tmp_path, capsys)
    assert out == ""
    assert "it has a mapping below" in err


def test_an_unfinished_search_is_proven_as_far_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    program, proof = tmp_path / "in.mlir", tmp_path / "p.json"
    program.write_text(graph_text("gemm", (64, 32, 64)))
    flags = ["--hardware", EDGE, "--time-limit", "0.4", "--json"]
    main([str(program), *flags, "--certificate", str(proof)])
    found = json.loads(capsys.readouterr().out)
    assert not found["proven"]
    out, err = check(json.loads(proof.read_text()), tmp_path, capsys)
    assert err == ""
    assert f"(gap {found['gap_percent']:.2f} %)" in out


def test_a_structure_without_a_mapping_is_no_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    program, few, proof = (tmp_path / name for name in ("in.mlir", "c.yaml", "p.json"))
    program.write_text(graph_text("gemm", (8, 4, 32)))
    few.write_text(
        'dim: ["N:cx,cy;M:kx,ky", "N:cx,cy,kx,ky"]\nstrategy: full\n'
        'factors: "y_dram: M=8"\n'  # too much for the 2 rows that a core has
    )
    flags = ["--hardware", EDGE, "--constraints", str(few), "--json"]
    main([str(program), *flags, "--certificate", str(proof)])
    assert json.loads(capsys.readouterr().out)["proven"]
    fields = json.loads(proof.read_text())
    bounds = [claim["bound"] for claim in fields["claims"]]
    assert bounds == [fields["value"], fields["value"]]
    out, err = check(fields, tmp_path, capsys)
    assert err == ""
    assert "true" in out
