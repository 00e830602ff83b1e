"""comet-explore: the best mapping, its bound, its pipeline, and its errors."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from programs import graph_text
from semantics import comet_context, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.cost.estimate import ModelName
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.explore.constraints import Constraints, Kind, read_constraints
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.search import Goal
from comet.passes.sharding.dim_axes import format_dims, parse_dims
from comet.tools.comet_explore import main
from comet.yaml_file import FileFormatError

EDGE = "samples/hardware/edge.yaml"
HEAD = "tensor<1x1x256x64xf8E4M3FN>"
ATTENTION = (
    f"func.func @f(%q: {HEAD}, %k: {HEAD}, %v: {HEAD}) -> {HEAD} {{\n"
    f"  %o = compound.attention %q, %k, %v : ({HEAD}, {HEAD}, {HEAD}) -> {HEAD}\n"
    f"  func.return %o : {HEAD}\n}}\n"
)


def space_of(
    op: str, sizes: tuple[int, ...], constraints: Constraints, goal: Goal | None = None
) -> StructureSpace:
    return space_of_text(graph_text(op, sizes), constraints, goal or Goal())


def space_of_text(text: str, constraints: Constraints, goal: Goal) -> StructureSpace:
    hardware = f'attach-hardware{{path="{EDGE}"}}'
    module = run_passes(parse_module(text), hardware)
    return StructureSpace(comet_context(), module, goal, constraints)


def figures_of(module: ModuleOp) -> float:
    (mapping,) = (op for op in module.body.block.ops if isinstance(op, MappingOp))
    figures = estimate_of(mapping)
    assert figures is not None
    return figures.latency


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "in.mlir"
    path.write_text(graph_text("gemm_softmax", (8, 8, 32)))
    return str(path)


@pytest.fixture
def few(tmp_path: Path) -> list[str]:
    """Flags that leave few structures."""
    path = tmp_path / "few.yaml"
    path.write_text("stream: false\nstrategy: [full, partial]\ndim: [N, 'M:kx,ky', '']")
    return ["--constraints", str(path)]


def explored(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, object]:
    main([*flags, "--hardware", EDGE, "--json"])
    return cast(dict[str, object], json.loads(capsys.readouterr().out))


def failure(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    with pytest.raises(SystemExit):
        main(list(flags))
    return capsys.readouterr().err


def test_the_answer_is_proven_and_its_pipeline_makes_it(
    program: str, few: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    out, mlir = tmp_path / "out", tmp_path / "best.mlir"
    found = explored(capsys, program, *few, "--emit", str(out), "--output", str(mlir))
    assert found["proven"]
    assert found["gap_percent"] == 0
    assert found["lower_bound"] == found["latency_cycles"]
    assert found["structures_closed"] == found["structures"]
    again = run_passes(
        parse_module(Path(program).read_text()), cast(str, found["pipeline"])
    )
    assert figures_of(again) == found["latency_cycles"]
    energy = estimate_module(again, "paper").energy
    assert energy == pytest.approx(found["energy_pj"], rel=1e-12)
    assert {path.name: path.read_text() for path in out.iterdir()} == write_files(again)
    assert figures_of(parse_module(mlir.read_text())) == found["latency_cycles"]


def test_no_worse_than_the_pipeline(
    program: str, few: list[str], capsys: pytest.CaptureFixture[str]
):
    found = explored(capsys, program, *few)
    default = run_passes(
        parse_module(Path(program).read_text()),
        f'attach-hardware{{path="{EDGE}"}},comet-accelerator',
    )
    assert cast(float, found["latency_cycles"]) <= figures_of(default)


def test_a_saved_answer_is_a_constraint(
    program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    path = tmp_path / "c.yaml"
    path.write_text(
        'stream: false\ndim: "N:cx,cy,kx,ky"\nstrategy: full\n'
        'kind: auto\nfactors: "gemm_dram: M=8"\n'
    )
    message = failure(
        capsys, program, "--hardware", EDGE, "--constraints", str(path), "--json"
    )
    assert "names the node gemm_dram, and the tree has" in message
    names = message.split("the tree has ")[1].split("\n")[0].split(", ")
    path.write_text(path.read_text().replace("gemm_dram", names[0]))
    found = explored(capsys, program, "--constraints", str(path))
    assert found["structures"] == 1
    assert f"{names[0]}: M=8" in cast(str, found["pipeline"])
    assert found["mapping"] == "stream=false dim=N:cx,cy,kx,ky strategy=full"


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_other_objectives(
    program: str, few: list[str], objective: str, capsys: pytest.CaptureFixture[str]
):
    fast = explored(capsys, program, *few)
    found = explored(capsys, program, *few, "--objective", objective)
    key = {"energy": "energy_pj", "edp": "edp"}[objective]
    assert cast(float, found[key]) <= cast(float, fast[key])
    assert found["lower_bound"] == pytest.approx(found[key])


def test_what_the_time_leaves_open_is_in_the_gap():
    space = space_of("gemm_softmax", (64, 64, 128), Constraints())
    search = Exploration(space, time_limit=0.5)
    search.run()
    short = search.lower_bound
    assert not search.complete
    assert not search.proven
    assert search.best is not None  # that of comet-accelerator
    assert 0 < short < search.objective
    search.time_limit = 3.0  # the same search goes on
    search.run()
    assert search.items
    assert short <= search.lower_bound <= search.objective


def test_shardings_are_all_assignments_of_clusters_and_cores():
    space = space_of("gemm", (8, 6, 16), Constraints())
    module = run_passes(space.module, "decompose")
    found = {format_dims(dims) for dims in space.shardings(module)}
    assert found == {
        "",
        "M:cx,cy",
        "M:kx,ky",
        "N:cx,cy",
        "N:kx,ky",
        "N:cx,cy,kx,ky",
        "M:cx,cy;N:kx,ky",
        "N:cx,cy;M:kx,ky",
    }


def test_each_axis_may_shard_a_dimension_of_its_own():
    space = space_of("gemm", (8, 6, 16), Constraints(split=True))
    module = run_passes(space.module, "decompose")
    found = {format_dims(dims) for dims in space.shardings(module)}
    assert {"M:cx;N:cy,kx,ky", "N:cx,ky;M:cy,kx", "K:cx", ""} <= found
    assert "K:cx,cy" not in found  # 4 instances do not divide 6


@pytest.mark.parametrize("model", ["paper", "ideal"])
@pytest.mark.parametrize(
    "text",
    [
        graph_text("gemm_softmax", (67, 16, 67)),
        Path("samples/gated_mlp.mlir").read_text(),
        ATTENTION,
    ],
    ids=["padded", "two units", "attention"],
)
def test_no_mapping_is_below_the_bound_of_all(text: str, model: ModelName):
    space = space_of_text(text, Constraints(), Goal(model))
    found = space.default()
    assert found is not None
    assert 0 < space.bound() <= found.cost.latency


@pytest.mark.parametrize("text", [graph_text("gemm", (256, 64, 128)), ATTENTION])
def test_what_reaches_the_bound_of_all_needs_no_search(text: str):
    space = space_of_text(text, Constraints(), Goal("ideal"))
    search = Exploration(space)
    search.run()
    assert search.proven
    assert search.objective == space.bound()
    assert not search.items


def test_kinds_of_collectives_are_a_choice():
    """The best of all kinds is the best of the searches of each kind."""
    one = Constraints(stream=(False,), strategy=("full",), dim=(parse_dims(["N"]),))

    def searched(constraints: Constraints) -> Exploration:
        search = Exploration(space_of("gemm_softmax", (8, 8, 64), constraints))
        search.run()
        assert search.proven
        return search

    every = searched(one)
    labels = {item.structure.label for item in every.items}
    assert "stream=false dim=N strategy=full" in labels
    assert "stream=false dim=N kind=allreduce strategy=full" in labels
    assert len(labels) == 4  # reduce_broadcast is the cheapest alone
    assert any("kind=gather" in label for label in every.space.rejected)
    kinds: tuple[Kind, ...] = ("allreduce", "reduce_broadcast")
    alone = [searched(replace(one, kind=(kind,))).objective for kind in kinds]
    assert every.objective == min(alone)
    assert max(alone) > min(alone)


def test_the_buffer_in_the_way_is_named():
    """Other structures are rejected by a rule; that says less."""
    constraints = Constraints(strategy=("full",), stream=(False,))
    search = Exploration(space_of("gemm_softmax", (384, 1536, 512), constraints))
    with pytest.raises(
        PassFailedException,
        match=r"do not fit, .* level \w+ needs \d+ bytes and has \d+",
    ):
        search.run()


def test_padding_is_a_choice():
    constraints = Constraints(strategy=("full",), stream=(False,), dim=((),))
    search = Exploration(space_of("gemm", (257, 4, 16), constraints))
    search.run()
    labels = [item.structure.label for item in search.items]
    assert "stream=false dim= strategy=full" in labels
    assert any(label.startswith("pad=M=") for label in labels)
    assert search.best is not None
    assert search.best.label.startswith("pad=M=")


def test_constraints_read():
    text = "dim: ['M:cx,cy', '']\nstream: [true]\nchunks: root\nkind: gather\nat: OB\n"
    text += "split: true\n"
    found = read_constraints(text, "c.yaml")
    assert found.dim == (parse_dims(["M:cx", "cy"]), ())
    assert found.split
    assert (found.stream, found.chunks) == ((True,), ("root",))
    assert (found.kind, found.at, found.strategy) == (("gather",), "OB", None)
    assert read_constraints("", "c.yaml") == Constraints()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b", "c.yaml:1: there is no constraint 'a'; known: dim, split, stream"),
        ("- b", "c.yaml:1: constraints are a map with the keys dim, split"),
        ("at: [a]", "c.yaml:1: 'at' has a nested value; write a text"),
        ("\nstrategy: all", "c.yaml:2: 'strategy': 'all' is none of none, isolate"),
        ("dim: 'M:1'", "c.yaml:1: 'dim': the option 'dim' names dimensions"),
        ("pad: much", "c.yaml:1: 'pad': "),
        ("factors: 'M=2'", "c.yaml:1: 'factors': "),
    ],
)
def test_mistakes_in_constraints(text: str, message: str):
    with pytest.raises(FileFormatError) as error:
        read_constraints(text, "c.yaml")
    assert str(error.value).startswith(message)


def test_a_program_without_a_mapping_says_why():
    dims = (parse_dims(["Q"]),)
    search = Exploration(space_of("gemm", (8, 6, 16), Constraints(dim=dims)))
    with pytest.raises(PassFailedException, match="there is no dimension Q to shard"):
        search.run()


def test_a_factor_that_does_not_divide_leaves_nothing(
    program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    path = tmp_path / "c.yaml"
    path.write_text('strategy: full\nfactors: "max_dram: M=3"\n')
    message = failure(
        capsys, program, "--hardware", EDGE, "--constraints", str(path), "--json"
    )
    assert message.startswith("comet-explore: error: ")
    assert "\n" not in message.strip()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--time-limit", "0"], "the time limit is a positive number of seconds"),
        (["--tolerance", "1"], "the tolerance is a fraction from 0 to below 1"),
        (["--model", "tool"], "invalid choice: 'tool'"),
        (["--hardware", "samples/hardware/h200x1.yaml"], "GPU"),
    ],
)
def test_mistakes_in_flags(
    program: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    found = failure(capsys, program, "--hardware", EDGE, *flags)
    assert message in found
    assert found.startswith("comet-explore: error: ")
