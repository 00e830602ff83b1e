"""Choices that are passes: collectives and bindings of their own, as brute force."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from accelerators import edge_like
from brute_force import least_costs
from covering import EVERY_CASE, exhaustive
from programs import graph_text
from semantics import comet_context, parse_module, run_passes

from comet.api.question import Source
from comet.api.saved import saved_constraints
from comet.cost.accelerator.breakdown import breakdown
from comet.cost.accelerator.model import price
from comet.dialects.schedule.attributes import BindingKind
from comet.passes.explore.constraints import ALL, Constraints, read_constraints
from comet.passes.explore.quick import priced
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.structure import REJECTED
from comet.passes.schedule.bind import KINDS
from comet.passes.schedule.tile.exact import Exact
from comet.passes.search import Goal, Objective
from comet.passes.sharding.dim_axes import parse_dims
from comet.tools.comet_explore import main

OBJECTIVES: tuple[Objective, ...] = (
    ("latency", "energy") if EVERY_CASE else ("latency",)
)
EDGE = "samples/hardware/edge.yaml"
OF_THREE = edge_like((3, 1), (1, 1))
"""Three clusters of one core."""
ONE = Constraints(
    pad="none",
    stream=(False,),
    strategy=("full",),
    loops=("shared",),
    dim=(parse_dims(["N"]),),
)
BOTH = replace(ONE, each=True, at=(ALL,), kind=("allreduce", "reduce_broadcast"))
"""Structures whose two collectives are of two kinds, at GB or OB."""
PARTS = replace(ONE, parts="all", dim=None, kind=("allreduce",))
"""Structures whose dimensions take any instances of an axis that divide them."""
MIXED = replace(ONE, mixed=True, bindings=KINDS, strategy=("none",), dim=((),))
SOFTMAX = graph_text("gemm_softmax", (2, 1, 16))
THREE = """
func.func @f(%x: X, %y: X) -> (X, X) {
  %e = compound.map exp %x : X -> X
  %s = compound.map sqrt %y : X -> X
  %a = compound.map add %s, %y : X, X -> X
  func.return %e, %a : X, X
}
""".replace("X", "tensor<2x4xf16, #compound.dims<M, N>>")


LEFT, RIGHT, RESULT = (
    f"tensor<64x64xf16, #compound.dims<{dims}>>" for dims in ("M, K", "K, N", "M, N")
)
PRODUCTS = f"""
func.func @f(%x: {LEFT}, %u: {RIGHT}, %v: {RIGHT}) -> ({RESULT}, {RESULT}) {{
  %e = compound.contract %x, %u : {LEFT}, {RIGHT} -> {RESULT}
  %a = compound.contract %x, %v : {LEFT}, {RIGHT} -> {RESULT}
  func.return %e, %a : {RESULT}, {RESULT}
}}
"""


def space_of(
    text: str, limits: Constraints, goal: Goal, hardware: str = EDGE
) -> StructureSpace:
    module = run_passes(parse_module(text), f'attach-hardware{{path="{hardware}"}}')
    return StructureSpace(comet_context(), module, goal, limits)


@pytest.mark.parametrize(
    ("text", "limits", "hardware", "wanted"),
    [
        (SOFTMAX, BOTH, EDGE, "each=allreduce GB; reduce_broadcast GB"),
        (THREE, MIXED, EDGE, "bind=@f: parallel pipeline"),
        (graph_text("gemm_softmax", (2, 1, 4)), PARTS, OF_THREE, "dim=N:cx=2"),
    ],
    ids=["each", "mixed", "parts"],
)
@exhaustive
def test_as_good_as_brute_force(
    text: str, limits: Constraints, hardware: str, wanted: str
):
    """Over all structures, and all factors and orders of each."""
    least, labels = [inf for _ in OBJECTIVES], set[str]()
    for structure in space_of(text, limits, Goal("paper"), hardware).structures():
        labels.add(structure.label)
        try:
            factors = structure.factor_space(limits)
        except REJECTED:
            continue
        least = list(map(min, least, least_costs(factors, "paper", OBJECTIVES)))
    for objective, expected in zip(OBJECTIVES, least, strict=True):
        goal = Goal("paper", objective)
        search = Exploration(space_of(text, limits, goal, hardware))
        search.run()
        assert search.proven
        assert search.objective == pytest.approx(expected, rel=1e-12)
    assert any(wanted in label for label in labels)


def test_the_answer_is_a_constraint_and_its_proof_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Every choice is in the pipeline, so that a saved answer leaves nothing else."""
    program, limits, best, proof = (
        tmp_path / name for name in ("in.mlir", "c.yaml", "best.mlir", "proof.json")
    )
    program.write_text(SOFTMAX)
    limits.write_text(
        "stream: false\nstrategy: full\nloops: shared\ndim: N\npad: none\nat: [OB, GB]"
        "\nkind: allreduce\neach: true\n"
    )
    flags = [str(program), f"--hardware={EDGE}", f"--constraints={limits}", "--json"]
    main([*flags, "--output", str(best), "--certificate", str(proof)])
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out
    saved = saved_constraints(Source(best.read_text(), str(best)))
    given = read_constraints(saved.text, "best.mlir")
    assert set(given.at or ()) <= {"OB", "GB"}
    main([*flags[:2], f"--constraints={best}", "--json"])
    assert '"proven": true' in capsys.readouterr().out


@exhaustive
def test_instances_are_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """No axis of 3 or 5 clusters divides an extent, those of 2 by 2 of them do."""
    names = ("in.mlir", "c.yaml", "best.mlir", "proof.json")
    program, limits, best, proof = (tmp_path / name for name in names)
    program.write_text(graph_text("gemm_softmax", (16, 4, 64)))
    few = "stream: false\nstrategy: full\nloops: shared\npad: none\nkind: allreduce\n"
    limits.write_text(f"{few}dim: M\n")
    flags = [str(program), f"--hardware={edge_like((3, 5), (2, 2))}", "--json"]
    outputs = ["--output", best, "--certificate", proof, "--emit", tmp_path / "out"]
    main([*flags, f"--constraints={limits}", *map(str, outputs)])
    found, sentence = json.loads(capsys.readouterr().out), "4 of the 15 instances of GB"
    assert found["proven"]
    assert ",known-meshes," in found["pipeline"]
    assert (tmp_path / "out/arch.yaml").read_text().startswith(f"# {sentence}")
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out
    whole = f"{limits.read_text()}mesh: whole\n"
    for constraints, mesh in ((best.read_text(), "known"), (whole, "")):
        path = tmp_path / f"again{mesh}.{'mlir' if mesh else 'yaml'}"
        path.write_text(constraints)
        main([*flags, f"--constraints={path}"])
        again = json.loads(capsys.readouterr().out)
        assert ("known-meshes" in again["pipeline"]) == bool(mesh)
        worse = again["latency_cycles"] > found["latency_cycles"]
        assert worse == (not mesh)


@exhaustive
def test_axes_are_used_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Three clusters divide no extent; two of them beat one, which the tool knows."""
    names = ("in.mlir", "c.yaml", "best.mlir", "proof.json")
    program, limits, best, proof = (tmp_path / name for name in names)
    program.write_text(graph_text("gemm_softmax", (10, 16, 64)))
    few = "stream: false\nstrategy: full\nloops: shared\npad: none\nkind: allreduce\n"
    flags = [str(program), f"--hardware={OF_THREE}", "--json", "--constraints"]
    found: dict[str, dict[str, object]] = {}
    for parts in ("none", "largest"):
        limits.write_text(f"{few}parts: {parts}\n")
        outputs = ["--output", str(best), "--certificate", str(proof)]
        main([*flags, str(limits), *outputs])
        found[parts] = json.loads(capsys.readouterr().out)
    latency = {parts: each["latency_cycles"] for parts, each in found.items()}
    assert latency == {"none": 865, "largest": 679}
    assert 'select-instances{axes="cx=2"}' in str(found["largest"]["pipeline"])
    assert found["largest"]["proven"]
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out
    given = read_constraints(
        saved_constraints(Source(best.read_text(), str(best))).text, "best.mlir"
    )
    assert given.dim == (parse_dims(["N:cx=2"]),)
    main([*flags, str(best)])
    again = json.loads(capsys.readouterr().out)
    assert again["latency_cycles"] == 679
    assert again["structures"] == 1


def test_kinds_of_a_saved_answer():
    pipeline = (
        'place-collectives{each=\\"allreduce GB; gather OB\\"},fuse{strategy=full},'
        'tile{factors=\\"\\"},bind{bodies=\\"@f: pipeline sequential\\"},lower-to-comet'
    )
    text = f'builtin.module attributes {{comet.pipeline = "{pipeline}"}} {{}}'
    given = read_constraints(saved_constraints(Source(text, "a.mlir")).text, "a.mlir")
    assert (given.each, given.mixed) == (True, True)
    assert (given.kind, given.at) == (("allreduce", "gather"), ("GB", "OB"))
    assert given.bindings == (BindingKind.SEQUENTIAL, BindingKind.PIPELINE)


@pytest.mark.parametrize("rows", [2, 4, 8])
def test_reuse_saves_no_first_reads_that_a_pipeline_hides(tmp_path: Path, rows: int):
    """No mapping takes less than its busiest unit, nor than its bounds."""
    slow = tmp_path / "slow.yaml"
    slow.write_text(
        Path(EDGE).read_text().replace("child_read_bw: 2048", "child_read_bw: 16")
    )
    limits = replace(ONE, bindings=(BindingKind.PIPELINE,), dim=((),))
    (structure,) = space_of(PRODUCTS, limits, Goal(), str(slow)).structures()
    space = structure.factor_space(limits)
    root, shared, _ = space.keys
    loops = {(key, dim): 1 for key in space.keys for dim in "MNK"}
    space = space.fixing({**loops, (root, "M"): 64 // rows, (shared, "M"): rows})
    part, bounds = space.whole, list[float]()
    while not space.is_plan(part):
        bounds.append(float(Exact(space, Goal()).bounds(part).min()))
        (part,) = space.cut(part)
    problem, hardware = (
        space.template.problem_for(space.plan(part, 0)),
        space.template.hardware,
    )
    cycles = price(problem, hardware).latency
    busy = breakdown(problem, hardware, "paper").busy
    assert cycles >= max(n for (name, _), n in busy.items() if name == "GEMMEngine")
    assert cycles >= max(bounds)


def test_structures_that_differ_in_bindings_share_a_tree():
    limits = replace(ONE, bindings=KINDS, kind=("allreduce",))
    several = [*space_of(SOFTMAX, limits, Goal("paper", "latency")).structures()]
    assert len(several) > 1
    assert len({id(each.fused) for each in several}) == 1
    for each in several:
        alone = replace(each, fused=None)
        assert each.tree().is_structurally_equivalent(alone.tree())


@exhaustive
def test_an_answer_costs_what_its_passes_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The COMET tool cannot price two nests of a pipeline; other models can."""
    program, limits, proof = (tmp_path / n for n in ("in.mlir", "c.yaml", "proof.json"))
    program.write_text(graph_text("gemm_softmax", (64, 64, 128)))
    limits.write_text(
        "{bindings: pipeline, dim: N, stream: false, pad: none, strategy: full, "
        'loops: separate, factors: "y_dram: M=4; c_gb: M=2; y_gb: M=2"}'
    )
    flags = [f"--hardware={EDGE}", f"--constraints={limits}", "--json"]
    main([str(program), *flags, "--certificate", str(proof)])
    found = json.loads(capsys.readouterr().out)
    assert "lower-to-comet{model=paper}" in found["pipeline"]
    assert found["lower_bound"] == found["latency_cycles"]
    mapped = run_passes(parse_module(program.read_text()), found["pipeline"])
    assert priced((), mapped).cost.latency == pytest.approx(found["latency_cycles"])
    main(["--verify", str(proof)])
    assert "true; model paper" in capsys.readouterr().out
