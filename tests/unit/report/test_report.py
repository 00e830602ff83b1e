"""The page on a mapping: a file that is well formed, complete, and true."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from browser import BROWSER, expect_readable
from html_pages import Reader, expect_a_trace, expect_one_file, trace_in
from matplotlib.figure import Figure
from paths import ROOT
from recorded_runs import RUNS, parsed
from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.exploring import Notify, explore, ignored
from comet.api.functions import compile as compiled
from comet.api.program import printed
from comet.api.question import NOTHING, Question, Sampling
from comet.api.source import Source
from comet.batch import store
from comet.codegen.chrome_trace import Slice
from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError, ModelName
from comet.report.front import Point, front_of, not_beaten
from comet.report.mapping_figures import MappingFigures, TreeNode, figures_of
from comet.report.mapping_report import command_of, compared_with, page_of
from comet.report.mapping_timeline import timeline
from comet.report.numbers import Room, conserved
from comet.report.plots import Plot, occupancies, roofline, savings
from comet.tools.comet_explore import main
from comet.tools.diagnostics import CometError

PROGRAM = ROOT / "samples/gemm_softmax.mlir"
HARDWARE = ROOT / "samples/hardware/edge.yaml"
ONE = "{dim: 'N:cx,cy;M:kx,ky', strategy: full, stream: false, pad: none}"


@cache
def question() -> Question:
    """A search that ends with the first mapping it finds."""
    return Question(
        Source.read(PROGRAM),
        Source.read(HARDWARE),
        Source(ONE, "one.yaml"),
        tolerance=0.99,
    )


@cache
def page() -> str:
    """What the tool writes, with another mapping to compare with."""
    with TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in ("one.yaml", "other", "r.html")}
        files["one.yaml"].write_text(ONE)
        files["other"].write_text(printed(default()))
        flags = ["--hardware", str(HARDWARE), "--tolerance", "0.99"]
        flags += ["--constraints", str(files["one.yaml"])]
        flags += ["--compare", str(files["other"]), "--report", str(files["r.html"])]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "explore", explored)
            main([str(PROGRAM), *flags])
        return files["r.html"].read_text()


@cache
def answer() -> Answer:
    """The answer that the page is about."""
    return explore(question())


def explored(asked: Question, progress: Notify = ignored) -> Answer:
    """What a search finds; the question of this file is searched once."""
    same = asked.objective == question().objective
    return answer() if same else explore(asked, progress)


@cache
def found() -> MappingFigures:
    """The figures of its mapping."""
    return figures_of(answer().module, "paper")


@cache
def default() -> ModuleOp:
    """Another mapping of the same program."""
    passes = "comet-accelerator{strategy=full stream=false dim=N pad=none}"
    return compiled(PROGRAM, HARDWARE, passes).module


@cache
def figures(model: ModelName) -> MappingFigures:
    """The figures of the other mapping."""
    return figures_of(default(), model)


def test_page_is_one_file_that_is_well_formed() -> None:
    expect_one_file(page())


if BROWSER is not None:

    def test_page_in_a_browser() -> None:
        """Below the mouse, nodes of the tree mark their slices of the timeline."""
        it = expect_readable(page(), dark=True, width=500)
        assert len(it["marked"]) == _size(found().tree)
        assert it["marked"][0][0] == 1
        assert all(after == 0 for _, after in it["marked"])


def test_page_is_complete_without_its_script() -> None:
    """Every figure stands in the text, and every plot in the page."""
    reader = Reader(re.sub(r"(?s)<script>.*</script>", "", page()))
    shown, it = reader.text, found()
    assert f"{it.latency:,.0f}" in shown
    assert f"{it.energy:,.0f}" in shown
    assert "proven" in shown
    assert "best found for" in shown
    assert it.bottleneck in shown
    for term in it.parts.terms:
        assert term.meaning in shown
    for one in it.parts.traffic:
        assert f"{one.read:,.0f}" in shown
    for room in it.rooms:
        assert f"{room.capacity:,}" in shown
    for gain in it.gains:
        assert gain.resource in shown
    for path in (PROGRAM, HARDWARE):
        assert sha256(path.read_bytes()).hexdigest() in shown
    assert answer().pipeline in shown.replace("'\"'\"'", "'")
    assert "--constraints" in shown
    assert reader.tags["svg"] == 8
    assert reader.tags["li"] == _size(it.tree) + _size(figures("paper").tree)


def _size(tree: TreeNode) -> int:
    return 1 + sum(map(_size, tree.children))


def test_the_sums_of_a_page_are_its_headline() -> None:
    """A sum that is not what it should be is said to differ."""
    assert "differs" not in page()
    assert page().count("= the latency") == 1
    assert page().count("= the energy") == 1
    levels = found().traffic_by_level
    assert page().count("= the model") == len(levels)
    assert conserved(1.0, 1.0 + 1e-12, "it") == "= it"
    assert conserved(1.5, 1.0, "it") == "differs from it by 0.5"


def test_collectives_are_nodes_of_the_tree() -> None:
    tree = re.findall(r'<li class="collective" data-node="\d+">', page())
    assert len(tree) >= 2


@pytest.mark.parametrize("model", ["paper", "ideal"])
def test_figures_are_the_price(model: ModelName) -> None:
    """Terms, and levels, add up; what limits is named."""
    it = figures(model)
    terms = sum(term.cycles for term in it.parts.terms)
    assert terms == pytest.approx(it.latency)
    assert sum(it.energy_by_level.values()) == pytest.approx(it.energy)
    assert "10 % more saves" in it.bottleneck
    assert all(room.used <= room.capacity for room in it.rooms)
    marks = [mark for roof in it.roofline.roofs for mark in roof.marks]
    assert all(mark.reached < it.roofline.peak for mark in marks)


@pytest.mark.parametrize("model", ["paper", "ideal"])
def test_timeline_is_as_long_as_the_run(model: ModelName) -> None:
    it = figures(model)
    expect_a_timeline(it.slices, it.latency)


def expect_a_timeline(slices: Sequence[Slice], latency: float) -> None:
    """What is in one row does not overlap, and nothing is outside of the run."""
    rows = sorted(slices, key=lambda one: (one.row, one.start))
    slack = 1e-6 * latency
    for one, after in pairwise(rows):
        if one.row == after.row:
            assert one.start + one.length <= after.start + slack
    assert max(one.start + one.length for one in slices) == pytest.approx(latency)
    assert min(one.start for one in slices) == 0
    assert min(one.length for one in slices) >= 0


@pytest.mark.parametrize("run", RUNS[::5], ids=lambda run: run["id"])
def test_timeline_of_recorded_mappings(run: dict[str, str]) -> None:
    """Of those too whose nodes overlap."""
    problem, hardware = parsed(run)
    try:
        latency = price(problem, hardware, "paper").latency
    except CostError as error:
        pytest.skip(str(error))
    named = {node.index: node.name for node in problem.nodes}
    expect_a_timeline(timeline(problem, hardware, "paper", named), latency)


def test_trace_is_in_the_page() -> None:
    """The link holds the file that Perfetto opens."""
    events = expect_a_trace(trace_in(page()))
    assert len(events) == sum(one.length >= 0.001 for one in found().slices)
    whole = max(cast(float, event["dur"]) for event in events)
    assert whole == pytest.approx(found().latency)


def test_front_has_no_mapping_that_another_beats() -> None:
    """Equal ones are one; the chosen one stays."""
    a, b = Point("latency", 1, 4, True), Point("energy", 4, 1, False)
    worse, equal = Point("edp", 4, 2, False), Point("edp", 1, 4, False)
    assert not_beaten([b, worse, a]) == (a, b)
    assert not_beaten([a, b, equal]) == (Point("latency, edp", 1, 4, True), b)
    kept = Point("edp", 4, 2, True)
    assert kept in not_beaten([kept, b, Point("latency", 1, 4, False)])


def test_nothing_is_searched_after_an_interrupt() -> None:
    assert not answer().interrupted
    stopped = replace(answer(), interrupted=True)
    assert front_of(question(), stopped, explore) == ()


def test_samples_that_are_all_taken_are_no_interrupt() -> None:
    """The gap is open, and the time is not up."""
    asked = replace(question(), tolerance=0.0, time_limit=600, sampling=Sampling())
    better = replace(answer(), energy_pj=1.0, latency_cycles=1e9)
    points = front_of(asked, answer(), lambda _other: better)
    assert [point.label for point in points] == ["latency", "energy, edp"]


def test_the_command_repeats_the_search() -> None:
    asked = replace(
        question(),
        constraints=NOTHING,
        start=Source("", "best file.mlir"),
        sampling=Sampling("nsga2", 7, 50),
    )
    command = command_of(asked)
    assert "--start 'best file.mlir' " in command
    assert command.endswith("--sampler nsga2 --seed 7 --samples 50")


@pytest.mark.parametrize("found_one", [True, False])
def test_ctrl_c_ends_the_searches_for_other_objectives(found_one: bool) -> None:
    asked: list[Question] = []

    def interrupted(other: Question) -> Answer:
        asked.append(other)
        if found_one:
            return replace(answer(), interrupted=True)
        raise KeyboardInterrupt

    (point,) = front_of(question(), answer(), interrupted)
    assert len(asked) == 1
    assert point.chosen


def test_an_objective_without_a_mapping_has_no_point() -> None:
    """A search that finds nothing in its time leaves the report as it is."""

    def nothing(_question: Question) -> Answer:
        raise CometError("no valid mapping was found in 10 s")

    (point,) = front_of(question(), answer(), nothing)
    assert point.chosen


def test_texts_of_plots_are_not_cut_off() -> None:
    points = (Point("latency", 2e6, 3e7, chosen=True), Point("energy", 3e6, 2e7, False))
    for plot in page_of(question(), answer(), points, None).plots:
        figure = plot.figure()
        assert (box := figure.get_tightbbox()) is not None
        assert box.x0 >= 0 <= box.y0, plot.name
        assert box.x1 <= plot.width, plot.name
        assert box.y1 <= plot.height, plot.name


def test_a_unit_whose_operations_take_no_step_has_a_roofline(tmp_path: Path) -> None:
    """A reduction on one lane takes log2(1) steps."""
    text = HARDWARE.read_text().replace("computeWidth: 16", "computeWidth: 1")
    (tmp_path / "edge.yaml").write_text(text)
    program = """
      !X = tensor<8x16xf16, #compound.dims<M, N>>
      !M = tensor<8xf16, #compound.dims<M>>
      func.func @main(%x: !X) -> !M {
        %y = compound.reduce add %x : !X -> !M
        func.return %y : !M
      }"""
    passes = "comet-accelerator{strategy=full pad=none}"
    module = compiled(program, tmp_path / "edge.yaml", passes).module
    line = figures_of(module, "paper").roofline
    assert line.peak == float("inf")
    plot = Plot("roofline", 7, 4, lambda axes: roofline(axes, line))
    plot.save(tmp_path)


def test_plots_are_files(tmp_path: Path) -> None:
    plot = Plot("waterfall", 4, 2, lambda axes: savings(axes, {"clock": 3.0}))
    plot.save(tmp_path)
    assert (tmp_path / "waterfall.svg").read_text().startswith("<?xml")
    assert (tmp_path / "waterfall.png").read_bytes().startswith(b"\x89PNG")


def refused(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """What the tool says about flags that it refuses."""
    with pytest.raises(SystemExit, match="1"):
        main([str(PROGRAM), "--hardware", str(HARDWARE), *flags])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 800
    return said


def test_a_missing_package_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comet.report.PACKAGES", ("comet_has_no_such_package",))
    said = refused(capsys, "--report", "r.html")
    assert "pip install 'comet-compiler[report]'" in said
    assert "comet_has_no_such_package" in said


def test_compare_needs_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--report" in refused(capsys, "--compare", "other.mlir")


def test_compare_needs_a_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "--report", "r.html", "--compare", str(PROGRAM))
    assert "no mapping in" in said
    assert "--output" in said


def test_plots_are_not_written_over_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a file; name a folder" in refused(capsys, "--plots", str(PROGRAM))


@pytest.mark.parametrize(
    ("program", "rows", "said"),
    [
        ("gemm_softmax", 128, ""),
        ("gemm", 128, "of another program, c from a, b"),
        ("gemm_softmax", 64, "of other extents, M=64, N=256, K=64"),
    ],
)
def test_a_mapping_of_another_program_is_called_so(
    program: str, rows: int, said: str
) -> None:
    source = (ROOT / f"samples/{program}.mlir").read_text()
    source = source.replace("tensor<128x", f"tensor<{rows}x")
    pipeline = "comet-accelerator{dim=M strategy=full stream=false pad=none}"
    other = compiled(source, hardware=HARDWARE, pipeline=pipeline).module
    mine = answer().module
    found = compared_with(("other.mlir", other), mine, figures_of(mine, "paper"))
    assert said in found.differs
    assert bool(found.differs) == bool(said)


def test_a_tensor_has_one_colour_in_all_buffers():
    axes = Figure().add_subplot()
    occupancies(axes, [Room("GB", 20, {"a": 1, "b": 3}), Room("OB", 10, {"b": 5})])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
