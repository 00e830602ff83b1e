"""The samplers of Optuna over the space of the exact search."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NoReturn, get_args

import pytest
from covering import EVERY_CASE, exhaustive
from programs import graph_text
from semantics import parse_module
from xdsl.dialects.builtin import StringAttr

from comet.api import sampling
from comet.api.answer import Answer
from comet.api.exploring import explore
from comet.api.question import Question, Sampler, Sampling
from comet.api.saved import PIPELINE
from comet.api.source import Source
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.explore.space import StructureSpace
from comet.tools import extras
from comet.tools.comet_explore import main
from comet.tools.diagnostics import CometError, UsageError

EDGE = Source.read("samples/hardware/edge.yaml")
CHOICES = 'stream: false, pad: none, dim: [N, ""], strategy: full'
FEW = Source(f"{{{CHOICES}, factors: 'y_dram: M=1'}}", "few.yaml")
PROGRAM = Source(graph_text("gemm_softmax", (8, 8, 32)), "in.mlir")
QUESTION = Question(PROGRAM, EDGE, FEW)
SAMPLES = 6 if EVERY_CASE else 4


@pytest.fixture(autouse=True)
def no_start(monkeypatch: pytest.MonkeyPatch):
    """No search starts from a mapping of comet-accelerator, so that samples count."""

    def nothing(_: StructureSpace) -> None:
        return None

    monkeypatch.setattr(StructureSpace, "default", nothing)


@cache
def sampled(sampler: Sampler, seed: int = 0) -> Answer:
    return explore(replace(QUESTION, sampling=Sampling(sampler, seed, SAMPLES)))


@cache
def exact() -> Answer:
    return explore(QUESTION)


@pytest.mark.parametrize("sampler", get_args(Sampler))
def test_the_best_sample_and_its_bound(sampler: Sampler):
    answer = sampled(sampler)
    assert 0 < answer.evaluated <= SAMPLES
    assert answer.space_size == exact().space_size
    best = exact().lower_bound
    assert answer.lower_bound is not None
    assert best is not None
    assert 0 < answer.lower_bound <= best
    assert answer.latency_cycles >= exact().latency_cycles
    gap = 100 * (1 - answer.lower_bound / answer.latency_cycles)
    assert answer.gap_percent == pytest.approx(gap)
    assert answer.proven == (answer.gap_percent == 0)


def test_the_pipeline_makes_the_mapping():
    answer = sampled("tpe")
    (mapping,) = (op for op in answer.module.walk() if isinstance(op, MappingOp))
    figures = estimate_of(mapping)
    assert figures is not None
    assert figures.latency == answer.latency_cycles
    saved = parse_module(answer.mlir())
    assert isinstance(saved.attributes.pop(PIPELINE), StringAttr)
    assert saved.is_structurally_equivalent(answer.module)


@exhaustive
def test_the_seed_decides():
    again = explore(replace(QUESTION, sampling=Sampling("tpe", 0, SAMPLES)))
    first = sampled("tpe")
    assert again.mlir() == first.mlir()
    assert again.evaluated == first.evaluated
    assert sampled("tpe", 1).pipeline != first.pipeline


def test_illegal_samples_get_a_penalty(monkeypatch: pytest.MonkeyPatch):
    def illegal(*_: object) -> None:
        return None

    monkeypatch.setattr(sampling, "priced", illegal)
    with pytest.raises(CometError, match="no valid mapping was found"):
        explore(replace(QUESTION, sampling=Sampling(samples=3)))


def test_a_fixed_factor_that_divides_nothing():
    text = FEW.text.replace("M=1", "M=3")
    question = replace(QUESTION, constraints=Source(text, "few.yaml"))
    with pytest.raises(CometError, match="do not divide the extents"):
        explore(replace(question, sampling=Sampling(samples=3)))


@exhaustive
def test_its_certificate_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    proof = tmp_path / "proof.json"
    proof.write_text(sampled("nsga2").certificate())
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out


def test_the_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "in.mlir").write_text(PROGRAM.text)
    (tmp_path / "few.yaml").write_text(FEW.text)
    flags = [str(tmp_path / "in.mlir"), "--hardware", EDGE.name, "--sampler", "tpe"]
    flags += ["--constraints", str(tmp_path / "few.yaml"), "--samples", str(SAMPLES)]
    main(flags)
    assert f"{sampled('tpe').latency_cycles:,.0f} cycles" in capsys.readouterr().out


def test_mistakes(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match="the seed is a number from 0 to 4294967295"):
        Sampling(seed=-1)
    with pytest.raises(UsageError, match="the number of samples is positive"):
        Sampling(samples=0)

    def missing(name: str) -> NoReturn:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(
        CometError, match=r"a sampler needs the package optuna; .*rch\]"
    ):
        explore(replace(QUESTION, sampling=Sampling()))
