"""comet-explore: the best mapping, its bound, its pipeline, and its errors."""

import json
import os
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from math import inf
from pathlib import Path
from typing import cast

import pytest
from covering import EVERY_CASE, exhaustive, one_of
from programs import graph_text
from semantics import comet_context, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.cost.estimate import ModelName
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.dialects.schedule.attributes import BindingKind
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore import best_first
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.state import State
from comet.passes.graph.pad import PadPass
from comet.passes.schedule.bind import KINDS
from comet.passes.schedule.plan_string import parse_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.search import Goal
from comet.passes.sharding.dim_axes import parse_dims
from comet.passes.sharding.place_collectives.kinds import Kind
from comet.tools.comet_explore import main

EDGE = "samples/hardware/edge.yaml"
HEAD = "tensor<1x1x256x64xf8E4M3FN>"
ATTENTION = (
    f"func.func @f(%q: {HEAD}, %k: {HEAD}, %v: {HEAD}) -> {HEAD} {{\n"
    f"  %o = compound.attention %q, %k, %v : ({HEAD}, {HEAD}, {HEAD}) -> {HEAD}\n"
    f"  func.return %o : {HEAD}\n}}\n"
)


INDEPENDENT = """
func.func @f(%x: X, %y: X) -> (X, X) {
  %e = compound.map exp %x : X -> X
  %s = compound.map sqrt %y : X -> X
  func.return %e, %s : X, X
}
""".replace("X", "tensor<32x64xf16, #compound.dims<M, N>>")
KIND: tuple[Kind, ...] = ("allreduce",)
SHARED = Constraints(loops=("shared",))
BY_N = parse_dims(["N"])


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


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("program") / "in.mlir"
    path.write_text(graph_text("gemm_softmax", (8, 8, 32)))
    return str(path)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags that leave few structures."""
    path = tmp_path_factory.mktemp("few") / "few.yaml"
    path.write_text(
        "stream: false\nstrategy: full\nloops: shared\nkind: allreduce\npad: none\n"
        "dim: [N, '']\n"
    )
    return ["--constraints", str(path)]


def explored(*flags: str) -> dict[str, object]:
    with redirect_stdout(StringIO()) as out:
        main([*flags, "--hardware", EDGE, "--json"])
    return cast(dict[str, object], json.loads(out.getvalue()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the mapping of the least latency."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def fast(program: str, few: list[str], files: Path) -> dict[str, object]:
    """The mapping of the least latency."""
    out, mlir = str(files / "out"), str(files / "best.mlir")
    return explored(program, *few, "--emit", out, "--output", mlir)


def failure(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    with pytest.raises(SystemExit):
        main(list(flags))
    return capsys.readouterr().err


def test_the_answer_is_proven_and_its_pipeline_makes_it(
    program: str, fast: dict[str, object], files: Path
):
    found = fast
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
    written = {path.name: path.read_text() for path in (files / "out").iterdir()}
    assert written == write_files(again)
    best = parse_module((files / "best.mlir").read_text())
    assert figures_of(best) == found["latency_cycles"]


class Gone(StringIO):
    """A pipe that nobody reads any more."""

    def flush(self) -> None:
        raise BrokenPipeError

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)


def test_files_are_written_though_the_reader_of_the_answer_is_gone(
    program: str, few: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mlir = tmp_path / "best.mlir"
    monkeypatch.setattr("sys.stdout", Gone())
    flags = ["--hardware", EDGE, "--tolerance", "0.99", "--output", str(mlir)]
    with pytest.raises(SystemExit):
        main([program, *few, *flags])
    assert "comet.pipeline" in mlir.read_text()


def test_no_worse_than_the_pipeline(program: str, fast: dict[str, object]):
    default = run_passes(
        parse_module(Path(program).read_text()),
        f'attach-hardware{{path="{EDGE}"}},'
        "comet-accelerator{stream=false strategy=full kind=allreduce pad=none}",
    )
    assert cast(float, fast["latency_cycles"]) <= figures_of(default)


def test_a_saved_answer_is_a_constraint(
    program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    path = tmp_path / "c.yaml"
    path.write_text(
        'stream: false\ndim: "N:cx,cy,kx,ky"\nstrategy: full\nloops: shared\n'
        'kind: auto\nfactors: "gemm_dram: M=8"\n'
    )
    message = failure(
        capsys, program, "--hardware", EDGE, "--constraints", str(path), "--json"
    )
    assert "names the node gemm_dram, and the tree has" in message
    names = message.split("the tree has ")[1].split("\n")[0].split(", ")
    path.write_text(path.read_text().replace("gemm_dram", names[0]))
    found = explored(program, "--constraints", str(path))
    assert found["structures"] == 1
    assert f"{names[0]}: M=8" in cast(str, found["pipeline"])
    assert "distribute{dim=N axes=cx,cy,kx,ky}" in cast(str, found["pipeline"])


@pytest.mark.parametrize("objective", ["energy", pytest.param("edp", marks=exhaustive)])
def test_other_objectives(
    program: str, few: list[str], objective: str, fast: dict[str, object]
):
    found = explored(program, *few, "--objective", objective)
    key = {"energy": "energy_pj", "edp": "edp"}[objective]
    assert cast(float, found[key]) <= cast(float, fast[key])
    assert found["lower_bound"] == pytest.approx(found[key])


def test_what_the_time_leaves_open_is_in_the_gap():
    limits = replace(
        SHARED, stream=(False,), strategy=("full",), dim=(BY_N,), pad="none"
    )
    space = space_of("gemm_softmax", (8, 8, 64), limits)
    start = space.default()
    assert start is not None
    search = Exploration(space, time_limit=1e-9)
    search.run()
    short = search.lower_bound
    assert not search.complete
    assert not search.proven
    assert not search.interrupted
    assert search.best is not None
    assert search.best.cost == start.cost  # no limit ends it
    assert 0 < short < search.objective
    search.time_limit, search.notify = inf, interrupt  # the same search goes on
    search.run()
    assert search.items
    assert not search.complete
    assert short <= search.lower_bound <= search.objective


def interrupt(_: State) -> None:
    """Press Ctrl-C when the first structure was searched for a while."""
    raise KeyboardInterrupt


def test_what_no_time_is_left_for_is_said_by_the_start(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "c.yaml"
    path.write_text("stream: false\nstrategy: full\ndim: N\nfactors: 'no_ob: M=4'\n")
    flags = ["--hardware", EDGE, "--constraints", str(path), "--time-limit", "1e-9"]
    message = failure(capsys, program, *flags)
    assert "so far the constraint 'factors' names the node no_ob" in message


def no_start(_: StructureSpace) -> None:
    """Find no mapping."""


def test_without_a_quick_start_samples_are_the_start(monkeypatch: pytest.MonkeyPatch):
    """Branch and bound of a large structure may reach no mapping in its time."""

    monkeypatch.setattr(StructureSpace, "default", no_start)
    monkeypatch.setattr(best_first, "FIRST_PATIENCE", 0)
    fixed = parse_plan("c_dram: M=4")
    constraints = Constraints(stream=(False,), strategy=("none",), factors=(*fixed,))
    space = space_of("gemm_softmax", (64, 64, 128), constraints)
    with pytest.raises(KeyboardInterrupt):
        Exploration(space, notify=interrupt, keeps_best=False).run()
    search = Exploration(space, notify=interrupt)
    search.run()
    assert search.interrupted
    assert len(search.items) == 1
    assert search.best is not None
    tile = next(each for each in search.best.passes if isinstance(each, TilePass))
    assert "M=4" in tile.factors


CHEAP = Constraints(strategy=("full",), chunks=("root",), dim=(parse_dims(["M"]),))
"""What makes a mapping that is about as cheap as any."""
STREAMED = replace(CHEAP, stream=(True,))
BOUNDED = {
    "padded": (graph_text("gemm_softmax", (67, 16, 67)), CHEAP),
    "two units": (
        Path("samples/gated_mlp.mlir").read_text(),
        replace(CHEAP, chunks=None),
    ),
    "attention": (ATTENTION, STREAMED),
}


@one_of(2)
@pytest.mark.parametrize(
    ("name", "model"),
    [
        (name, model)
        for index, name in enumerate(BOUNDED)
        for number, model in enumerate(("paper", "ideal"))
        if EVERY_CASE or (index == number)
    ],
)
def test_no_mapping_is_below_the_bound_of_all(name: str, model: ModelName):
    text, cheap = BOUNDED[name]
    every = space_of_text(text, Constraints(), Goal(model))
    one = space_of_text(text, cheap, Goal(model))
    found = one.default()
    assert found is not None
    assert 0 < every.bound() <= found.cost.latency


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (graph_text("gemm", (256, 64, 128)), Constraints()),
        pytest.param(ATTENTION, STREAMED, marks=exhaustive),
    ],
)
def test_what_reaches_the_bound_of_all_needs_no_search(text: str, limits: Constraints):
    space = space_of_text(text, limits, Goal("ideal"))
    search = Exploration(space)
    search.run()
    assert search.proven
    assert search.objective == space.bound()
    assert not search.items


def test_kinds_of_collectives_are_a_choice():
    """The best of all kinds is the best of the searches of each kind."""
    one = replace(SHARED, stream=(False,), strategy=("full",), dim=(BY_N,), pad="none")

    def searched(constraints: Constraints) -> Exploration:
        search = Exploration(space_of("gemm_softmax", (8, 8, 64), constraints))
        search.run()
        assert search.proven
        return search

    every = searched(one)
    labels = {item.label for item in every.items}
    assert "stream=false dim=N strategy=full" in labels
    assert "stream=false dim=N kind=allreduce strategy=full" in labels
    assert len(labels) == 2  # reduce_broadcast is the cheapest alone
    assert any("no 'collective.reduce_scatter'" in r for r in rejected(every))
    assert any("'collective.gather' stacks" in r for r in rejected(every))
    kinds: tuple[Kind, ...] = ("allreduce", "reduce_broadcast")
    alone = [searched(replace(one, kind=(kind,))).objective for kind in kinds]
    assert every.objective == min(alone)
    assert max(alone) > min(alone)


def rejected(search: Exploration) -> list[str]:
    """Return why structures are rejected."""
    return list(search.space.rejected.values())


@exhaustive
def test_bindings_are_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Two independent nests overlap; DRAM still takes as long as for both."""
    one = Constraints(stream=(False,), strategy=("none", "full"), dim=((),), pad="none")

    def searched(constraints: Constraints) -> Exploration:
        search = Exploration(space_of_text(INDEPENDENT, constraints, Goal()))
        search.run()
        assert search.proven
        return search

    alone, every = searched(one), searched(replace(one, bindings=KINDS))
    assert alone.space.bound() <= every.objective < 0.9 * alone.objective
    labels = [item.label for item in every.items]
    assert "stream=false dim= strategy=none bind=@f: pipeline" in labels
    assert "stream=false dim= strategy=none bind=@f: parallel" in labels
    (rejected,) = every.space.rejected.values()
    assert "which the COMET tool never finishes" in rejected

    program, limits, proof = (tmp_path / n for n in ("in.mlir", "c.yaml", "p.json"))
    program.write_text(INDEPENDENT)
    limits.write_text("bindings: all\nstream: false\ndim: ''\npad: none\n")
    flags = ["--constraints", str(limits), "--certificate", str(proof)]
    found = explored(str(program), *flags)
    assert found["latency_cycles"] == every.objective
    assert 'bind{kind=sequential bodies="@f: pipeline"' in cast(str, found["pipeline"])
    main(["--verify", str(proof)])
    assert f"no mapping below {every.objective:,.6g} " in capsys.readouterr().out


@exhaustive
def test_places_of_collectives_are_a_choice():
    """The best of all places is the best of the searches of each place."""
    one = replace(SHARED, stream=(False,), strategy=("full",), dim=(BY_N,), kind=KIND)

    def searched(*at: str) -> Exploration:
        search = Exploration(
            space_of("gemm_softmax", (2, 4, 16), replace(one, at=at or None))
        )
        search.run()
        assert search.proven
        return search

    every, shared, outer = searched("all"), searched(), searched("OB")
    assert [item.label for item in every.items] == [
        "stream=false dim=N strategy=full",
        "stream=false dim=N at=OB strategy=full",
    ]
    assert every.objective == min(shared.objective, outer.objective)
    assert shared.objective != outer.objective


def test_the_buffer_in_the_way_is_named():
    """Other structures are rejected by a rule; that says less."""
    limits = replace(
        SHARED, strategy=("full",), stream=(False,), dim=(BY_N, ()), pad="none"
    )
    search = Exploration(space_of("gemm_softmax", (64, 1536, 512), limits))
    with pytest.raises(
        PassFailedException,
        match=r"do not fit, .* level \w+ needs \d+ bytes and has \d+",
    ):
        search.run()


def test_the_first_rejection_is_named():
    one = replace(
        SHARED, stream=(False,), dim=(BY_N,), factors=tuple(parse_plan("nowhere: M=2"))
    )
    search = Exploration(space_of("gemm_softmax", (8, 8, 32), one))
    message = r"the first of \d+ structures, stream="
    with pytest.raises(PassFailedException, match=message):
        search.run()
    assert "the constraint 'factors' names the node nowhere" in search.rejection


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Constraints(stream=(True,)), "'stream' contradicts .*: nothing .* streams"),
        # Kinds of collectives that the COMET files lack are rejected beside it.
        (Constraints(chunks=("root",), pad="none"), "'chunks' contradicts .* folds"),
        (
            replace(
                SHARED,
                stream=(False,),
                dim=(BY_N,),
                strategy=("full",),
                factors=tuple(parse_plan("y_dram: M=3")),
            ),
            "'factors' contradicts .* do not divide the extents",
        ),
    ],
)
def test_contradictions_are_no_full_buffers(limits: Constraints, message: str):
    with pytest.raises(PassFailedException, match=message):
        Exploration(space_of("gemm", (8, 8, 32), limits)).run()


def test_bindings_that_no_node_can_have_are_named():
    parallel = replace(
        SHARED,
        stream=(False,),
        dim=(BY_N,),
        strategy=("full",),
        bindings=(BindingKind.PARALLEL,),
    )
    message = "'bindings' contradicts .*: none is legal for a node of stream=false"
    with pytest.raises(PassFailedException, match=message):
        Exploration(space_of("gemm_softmax", (8, 8, 32), parallel)).run()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Constraints(at=("GB", "L2")), "at level L2; its axes are at GB, OB"),
        (Constraints(dim=(BY_N, parse_dims(["Q"]))), "no dimension Q to shard"),
        (
            Constraints(factors=tuple(parse_plan("y_dram: Q=2"))),
            "the unknown dimension Q; there are K, M, N",
        ),
    ],
)
def test_names_are_checked_before_the_search(limits: Constraints, message: str):
    with pytest.raises(PassFailedException, match=message):
        space_of("gemm", (8, 8, 32), limits)


@exhaustive
def test_padded_extents_are_sharded():
    """The instances divide 16 rows, and not 13."""
    limits = replace(SHARED, pad="auto", strategy=("full",), kind=KIND, stream=(False,))
    space = space_of("gemm", (13, 8, 16), limits)
    labels = [each.label for each in space.structures()]
    assert any("pad=M=16" in label and "M:cx,cy;" in label for label in labels)
    named = replace(limits, dim=(parse_dims(["M:cx", "cy"]),))
    search = Exploration(space_of("gemm", (13, 8, 16), named))
    search.run()
    (reason,) = search.rejected_by
    assert "do not divide M = 13" in reason
    assert search.best is not None
    assert PadPass("M=16") in search.best.passes


@exhaustive
def test_products_with_own_loops_are_a_choice():
    """K is cut above the buffer of the weights, which a whole row does not fit."""
    one = Constraints(
        strategy=("full",), stream=(False,), dim=(BY_N,), kind=KIND, pad="none"
    )
    search = Exploration(space_of("gemm_softmax", (4, 1024, 512), one))
    search.run()
    assert search.proven
    assert search.best is not None
    assert search.best.label.endswith("strategy=full loops=separate")
    (plan,) = (each for each in search.best.passes if isinstance(each, TilePass))
    cut = {entry.name: dict(entry.loops) for entry in parse_plan(plan.factors)}
    assert cut["c_gb"]["K"] > 1
    module = search.space.module.clone()
    for each in (*search.best.passes[:-1], LowerToCometPass(model="paper")):
        each.apply(comet_context(), module)
    assert estimate_module(module, "paper").latency == search.objective


def test_padding_is_a_choice():
    constraints = Constraints(strategy=("full",), stream=(False,), dim=((),))
    search = Exploration(space_of("gemm", (257, 4, 16), constraints))
    search.run()
    labels = [item.label for item in search.items]
    assert "stream=false dim= strategy=full" in labels
    assert any(label.startswith("pad=M=") for label in labels)
    assert search.best is not None
    assert any(isinstance(part, PadPass) for part in search.best.passes)


ROOTS = """
func.func @f(%x: X) -> X {
  %y = compound.map rsqrt %x : X -> X
  func.return %y : X
}
""".replace("X", "tensor<4x8xf16, #compound.dims<M, N>>")
TWO_VECTORS = """
!X = tensor<8xf16, #compound.dims<K>>
!Y = tensor<8xf16, #compound.dims<K>>
!Z = tensor<f16, #compound.dims<>>
func.func @f(%x: !X, %y: !Y) -> !Z {
  %z = compound.contract %x, %y : !X, !Y -> !Z
  func.return %z : !Z
}
"""


def test_functions_that_the_files_lack_are_expanded(
    few: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, proof = tmp_path / "in.mlir", str(tmp_path / "proof.json")
    path.write_text(ROOTS)
    found = explored(str(path), *few, "--certificate", proof)
    assert found["proven"]
    assert ",expand-maps," in cast(str, found["pipeline"])
    main(["--verify", proof])
    assert ": true; " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROOTS.replace("rsqrt", "log"), "in.mlir:3:3: .* has no operation 'log'"),
        (TWO_VECTORS, "in.mlir:6:3: .* is no product of two matrices"),
    ],
)
def test_what_no_file_says_is_found_before_the_search(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "in.mlir").write_text(text)
    error = failure(capsys, str(tmp_path / "in.mlir"), "--hardware", EDGE)
    assert re.search(message, error)


def test_a_factor_that_does_not_divide_leaves_nothing(
    program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    path = tmp_path / "c.yaml"
    path.write_text('dim: N\nstrategy: full\nfactors: "max_dram: M=3"\n')
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
        (["--model", "other"], "invalid choice: 'other'"),
        (["--hardware", "samples/hardware/h200x1.yaml"], "GPU"),
        (["--verify", "p.json"], "holds its inputs; a program has no effect beside it"),
        (["--output", "nowhere/best.mlir"], "no file can be written at nowhere/best"),
        (["--emit", "README.md"], "--emit: README.md is a file; name a folder"),
        (["--emit", "README.md/a/b"], "--emit: README.md is a file; name a folder"),
        (["--certificate", "samples"], "no file can be written at samples; name one"),
    ],
)
def test_mistakes_in_flags(
    program: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    found = failure(capsys, program, "--hardware", EDGE, *flags)
    assert message in found
    assert found.startswith("comet-explore: error: ")
