"""`import comet`: what its functions return, and their errors."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from covering import exhaustive, one_of
from programs import graph_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

import comet
from comet.api.loading import INTERPRET
from comet.api.notebook import NotebookProgress, in_notebook
from comet.api.question import Sampling
from comet.codegen.comet import write_files
from comet.cost.from_ir.mapping import estimate_module
from comet.tools.diagnostics import UsageError

EDGE = "samples/hardware/edge.yaml"
H200 = "samples/hardware/h200x1.yaml"
PROGRAM = graph_text("gemm_softmax", (8, 8, 32))
PASSES = "comet-accelerator{strategy=full stream=false dim=N}"
FEW = {
    "stream": False,
    "strategy": "full",
    "dim": ["N:cx,cy,kx,ky"],
    "kind": "allreduce",
    "at": "GB",
}


@pytest.fixture(scope="module")
def mapped() -> comet.Compiled:
    return comet.compile(PROGRAM, EDGE, PASSES)


@pytest.fixture(scope="module")
def answer() -> comet.Answer:
    return comet.explore(PROGRAM, EDGE, FEW)


@pytest.fixture(scope="module")
def kernels() -> comet.Compiled:
    return comet.compile(PROGRAM, H200)


def modules_after(statement: str) -> set[str]:
    """Return what a new process has imported after a statement."""
    script = f"{statement}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_the_import_loads_nothing():
    assert not modules_after("import comet") & {"numpy", "xdsl", "yaml", "comet.api"}
    assert "numpy" in modules_after("import comet; comet.compile")


def test_every_name_is_there():
    assert set(dir(comet)) == set(comet.__all__)
    assert all(hasattr(comet, name) for name in comet.__all__)
    with pytest.raises(AttributeError, match="'comet' has no attribute 'exlpore'"):
        getattr(comet, "exlpore")


def test_cost_is_a_package_and_a_function(mapped: comet.Compiled):
    from comet.cost.estimate import Estimate

    assert issubclass(type(comet.cost), ModuleType)
    assert estimate_module(mapped.module).latency == comet.cost(mapped.module).latency
    assert Estimate.__module__ == "comet.cost.estimate"


def test_a_program_is_a_module_a_text_or_a_path(tmp_path: Path, mapped: comet.Compiled):
    (tmp_path / "in.mlir").write_text(PROGRAM)
    module = comet.parse(PROGRAM)
    assert comet.parse(tmp_path / "in.mlir").is_structurally_equivalent(module)
    assert comet.parse(str(tmp_path / "in.mlir")).is_structurally_equivalent(module)
    assert comet.compile(module, EDGE, PASSES).emit() == mapped.emit()
    assert module.is_structurally_equivalent(parse_module(PROGRAM))


def test_a_mapping_is_files_a_price_and_a_pipeline(
    mapped: comet.Compiled, tmp_path: Path
):
    assert mapped.emit("comet", dir=tmp_path / "out") == ""
    found = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert found == write_files(mapped.module)
    assert comet.cost(tmp_path / "out") == mapped.cost == comet.cost(mapped.emit())
    again = run_passes(parse_module(PROGRAM), mapped.pipeline)
    assert write_files(again) == found
    estimate = estimate_module(mapped.module)
    assert (mapped.cost.latency, mapped.cost.unit) == (estimate.latency, "cycles")
    assert mapped.cost.energy_pj == pytest.approx(estimate.energy, rel=1e-12)
    assert sum(mapped.cost.time.values()) == pytest.approx(mapped.cost.latency)
    by_level = sum(mapped.cost.energy_by_level.values())
    assert by_level == pytest.approx(mapped.cost.energy_pj, rel=1e-12)
    assert json.loads(json.dumps(mapped.cost.to_json()))["model"] == "paper"


def test_other_models_and_no_networks(mapped: comet.Compiled):
    fast = comet.cost(mapped.module, "ideal")
    assert fast.latency < mapped.cost.latency
    still = comet.cost(mapped.module, network_energy=False)
    assert still.energy_pj is not None
    assert mapped.cost.energy_pj is not None
    assert still.energy_pj < mapped.cost.energy_pj
    assert not any("<->" in level for level in still.energy_by_level)
    assert comet.cost(mapped.module, "tool").model == "tool"


def test_kernels_are_source_and_a_price(kernels: comet.Compiled):
    assert "def main_kernel(" in kernels.emit("triton")
    assert (kernels.cost.unit, kernels.cost.energy_pj) == ("ns", None)
    assert kernels.cost.time["launch tax"] == 4000
    assert sum(kernels.cost.time.values()) == kernels.cost.latency
    assert "taxes" in comet.compile(
        PROGRAM, H200, "triton-distributed{to=dataflow}"
    ).emit("taxes")


def test_a_launch_plan_without_estimate_is_priced(kernels: comet.Compiled):
    plan = comet.compile(PROGRAM, H200, "triton-distributed{to=dataflow}").module
    for op in plan.walk():
        op.attributes.pop("comet.cost", None)
    assert comet.cost(plan) == kernels.cost


def test_an_answer_is_the_best_mapping(answer: comet.Answer):
    notes: list[comet.Progress] = []
    again = comet.explore(comet.parse(PROGRAM), EDGE, FEW, progress=notes.append)
    assert answer.proven
    assert notes[-1].best == answer.latency_cycles
    assert comet.cost(answer.module).latency == answer.latency_cycles
    assert again.module.is_structurally_equivalent(answer.module)


def test_notebooks_show_tables(
    mapped: comet.Compiled, kernels: comet.Compiled, answer: comet.Answer
):
    for shown in (mapped, mapped.cost, kernels, kernels.cost):
        text = shown._repr_html_()  # pyright: ignore[reportPrivateUsage]
        assert text.startswith("<table>")
        assert "p: M=8" not in text or "&quot;" in text
    text = answer._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "gap 0.00 %, proven" in text


def test_notebooks_show_where_the_time_of_kernels_goes(kernels: comet.Compiled):
    """The three taxes, and of a launch plan each kernel; no price, no lines."""

    def shown(compiled: comet.Compiled) -> str:
        return compiled._repr_html_()  # pyright: ignore[reportPrivateUsage]

    for tax in ("launch tax", "synchronization tax", "locality tax"):
        assert f"{tax} (ns)" in shown(kernels)
    plan = comet.compile(PROGRAM, H200, "triton-distributed{to=dataflow}")
    assert "main_kernel" in shown(plan)
    assert f"{plan.cost.latency:,.0f} ns" in shown(plan)
    assert "price" not in shown(comet.compile(PROGRAM, H200, "decompose"))


def test_an_answer_is_kept_and_found_again(tmp_path: Path):
    store = tmp_path / "answers.db"
    first = comet.explore(PROGRAM, EDGE, FEW, store=store)
    again = comet.explore(PROGRAM, EDGE, FEW, store=store)
    assert again.to_json() == first.to_json()
    assert again.seconds == first.seconds


def test_a_sampler_takes_samples():
    answer = comet.explore(PROGRAM, EDGE, FEW, sampler="tpe", seed=3, samples=5)
    assert answer.evaluated <= 6
    assert answer.lower_bound is not None
    assert answer.latency_cycles >= answer.lower_bound
    asked = comet.question(PROGRAM, EDGE, FEW, sampler="tpe", seed=3, samples=5)
    assert asked.sampling == Sampling("tpe", 3, 5)


@exhaustive
def test_several_questions_are_answered_in_their_order(
    tmp_path: Path, answer: comet.Answer
):
    asked = [
        comet.question(PROGRAM, EDGE, FEW),
        comet.question(PROGRAM, EDGE, {"stram": True}),
        comet.question(PROGRAM, EDGE, FEW, objective="energy"),
    ]
    counts: list[tuple[int, int]] = []

    def count(answered: int, questions: int) -> None:
        counts.append((answered, questions))

    store = tmp_path / "answers.db"
    found = comet.explore_all(asked, jobs=1, store=store, progress=count)
    first, wrong, last = found
    assert isinstance(first, comet.Answer)
    assert first.latency_cycles == answer.latency_cycles
    assert str(wrong).startswith("constraints.yaml:1: there is no constraint 'stram'")
    assert isinstance(last, comet.Answer)
    assert last.objective == "energy"
    assert counts == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert len(comet.explore_all(asked[:1], jobs=1, store=store)) == 1


def test_notebooks_show_progress(monkeypatch: pytest.MonkeyPatch):
    assert not in_notebook()
    shown: list[object] = []

    def display(first: object, *, display_id: bool) -> object:
        assert display_id
        shown.append(first)
        return SimpleNamespace(update=shown.append)

    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell)
    )
    monkeypatch.setitem(
        sys.modules, "IPython.display", SimpleNamespace(display=display)
    )
    assert in_notebook()
    answer = comet.explore(PROGRAM, EDGE, FEW)
    assert len(shown) >= 2
    assert all(isinstance(each, comet.Progress) for each in shown)
    last = shown[-1]
    assert isinstance(last, comet.Progress)
    assert last.best == answer.latency_cycles
    NotebookProgress()(last)
    assert shown[-1] is last


def no_machine() -> object:
    return comet.compile(PROGRAM)


def no_pass() -> object:
    return comet.compile(PROGRAM, EDGE, "tilee")


def no_option() -> object:
    return comet.compile(PROGRAM, EDGE, "tile{a=b}")


def no_syntax() -> object:
    return comet.compile(PROGRAM, EDGE, "tile{")


def two_machines() -> object:
    return comet.compile(comet.compile(PROGRAM, EDGE, PASSES).module, EDGE)


def no_file() -> object:
    return comet.parse("nope.mlir")


def no_operation() -> object:
    return comet.parse("\nfunc.fun")


def no_price() -> object:
    return comet.cost(PROGRAM)


def no_mapping() -> object:
    return comet.cost(comet.compile(PROGRAM, EDGE, "decompose").module)


def no_model() -> object:
    return comet.cost(comet.compile(PROGRAM, H200).module, "tool")


def no_target() -> object:
    return comet.compile(PROGRAM, EDGE, PASSES).emit("tritn")


def no_target_option() -> object:
    return comet.compile(PROGRAM, EDGE, PASSES).emit("comet", die="out")


def no_kernel() -> object:
    return comet.compile(PROGRAM, EDGE, PASSES).load()


def no_program() -> object:
    return comet.compile(3, EDGE)  # pyright: ignore[reportArgumentType]


def no_module() -> object:
    compiled = comet.compile(PROGRAM, EDGE, "decompose")
    return comet.cost(compiled)  # pyright: ignore[reportArgumentType]


def no_accelerator() -> object:
    return comet.explore(PROGRAM, H200)


def no_constraint() -> object:
    return comet.explore(PROGRAM, EDGE, {"stram": True})


def no_certificate() -> object:
    return comet.verify("{}\n")


def no_time() -> object:
    return comet.explore(PROGRAM, EDGE, time_limit=0)


def no_samples() -> object:
    return comet.explore(PROGRAM, EDGE, sampler="tpe", samples=0)


def no_engine() -> object:
    return comet.explore_all([], engine="slurm")


def no_store() -> object:
    return comet.explore(PROGRAM, EDGE, FEW, store="samples")


@one_of(3)
@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (no_machine, "the program has no machine; give hardware=, or a pipeline="),
        (no_pass, "there is no pass named 'tilee'; did you mean 'tile'"),
        (no_option, "pass 'tile' has no option 'a'; it has"),
        (no_syntax, "column 6 of the pass or target specification"),
        (two_machines, "the module already has the hardware @edge"),
        (no_file, "nope.mlir: No such file or directory"),
        (no_operation, "<text>:2:9: error: there is no operation func.fun"),
        (no_price, "the module has no hardware; run attach-hardware"),
        (no_mapping, "the module has 0 ops 'comet.problem' where one is needed"),
        (no_model, "there is no model 'tool' here; choose from paper"),
        (no_target, "there is no target named 'tritn'; did you mean 'triton'"),
        (no_target_option, "target 'comet' has no option 'die'; did you mean 'dir'?"),
        (no_program, "a program is a module, a path or a text, not int; comet.from_t"),
        (no_module, "a program is a module, a path or a text, not Compiled; give its "),
        (no_kernel, "load: hardware @edge is no GPU; run comet-accelerator"),
        (no_accelerator, "explore: hardware @h200x1 is a GPU"),
        (no_constraint, "constraints.yaml:1: there is no constraint 'stram'"),
        (no_certificate, "<text>: this is no certificate"),
        (no_time, "the time limit is a positive number of seconds"),
        (no_samples, "the number of samples is positive"),
        (no_engine, "there is no engine 'slurm'; choose local, ray"),
        (no_store, "samples: answers cannot be kept here"),
    ],
)
def test_mistakes_are_one_sentence(mistake: Callable[[], object], message: str):
    with pytest.raises(comet.CometError) as error:
        mistake()
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_kernels_are_not_loaded_to_compile_without_a_gpu(
    kernels: comet.Compiled, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("comet.api.loading.has_gpu", lambda: False)
    monkeypatch.delenv(INTERPRET, raising=False)
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    with pytest.raises(comet.CometError, match="this machine has no GPU, and triton"):
        kernels.load()


def test_kernels_need_torch(kernels: comet.Compiled, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(INTERPRET, "1")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(comet.CometError, match="needs the package torch, which is not"):
        kernels.load()


def test_a_bug_is_no_sentence(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> ModuleOp:
        raise ZeroDivisionError

    monkeypatch.setattr("comet.api.functions.module_of", broken)
    with pytest.raises(ZeroDivisionError):
        comet.parse(PROGRAM)


def test_a_mistake_in_a_question_is_a_sentence():
    with pytest.raises(UsageError, match="the tolerance is a fraction"):
        comet.Question(comet.Source("", ""), comet.Source("", ""), tolerance=2.0)
