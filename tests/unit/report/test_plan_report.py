"""The page on a launch plan of GPUs, and on what comet-opt compiles."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from browser import BROWSER, expect_readable
from covering import exhaustive
from html_pages import Reader, expect_a_trace, expect_one_file, trace_in
from paths import HARDWARE, SAMPLES
from rank_plans import BODIES, hardware_pass, program_text
from semantics import parse_module, run_passes
from tool_run import ToolRun, comet_opt_command

from comet.api.functions import compile as compiled
from comet.report.numbers import conserved
from comet.report.plan_figures import PlanFigures, plan_figures_of

PROGRAM, MACHINE = SAMPLES / "ag_gemm.mlir", HARDWARE / "h200x8.yaml"
GEMM, EDGE = SAMPLES / "gemm.mlir", HARDWARE / "edge.yaml"
FEW = "strategy=full dim=N pad=none"
ON_EDGE = f'attach-hardware{{path="{EDGE}"}},comet-accelerator{{{FEW}}}'


def passes(options: str) -> str:
    """The pipeline of the sample on four ranks."""
    return (
        f'attach-hardware{{path="{MACHINE}"}},triton-distributed{{ranks=4 {options}}}'
    )


def opt(folder: Path, pipeline: str, *flags: str, program: Path = PROGRAM) -> ToolRun:
    """Run comet-opt on a sample; what it prints is a file of the folder."""
    out = str(folder / "out.mlir")
    return comet_opt_command([str(program), "-p", pipeline, "-o", out, *flags])


@cache
def page() -> str:
    """The page on kernels that push, beside the plan with barriers."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        assert opt(folder, passes("pattern=bsp to=dataflow")).code == 0
        other = (folder / "out.mlir").rename(folder / "bsp.mlir")
        flags = ["--report", str(folder / "r.html"), "--compare", str(other)]
        done = opt(folder, passes("pattern=push"), *flags)
        assert done.code == 0, done.err
        assert "tl.store" in (folder / "out.mlir").read_text()
        return (folder / "r.html").read_text()


@cache
def figures(pattern: str) -> PlanFigures:
    """The figures of a plan of two ranks that was written by hand."""
    module = parse_module(program_text(pattern))
    return plan_figures_of(run_passes(module, hardware_pass()))


@cache
def of_sample(options: str) -> PlanFigures:
    """The figures of the sample on four ranks."""
    return plan_figures_of(compiled(PROGRAM, pipeline=passes(options)).module)


def test_page_is_one_file_that_is_well_formed() -> None:
    expect_one_file(page())


if BROWSER is not None:

    def test_page_in_a_browser() -> None:
        expect_readable(page(), dark=False, width=1200)


def test_page_is_complete_without_its_script() -> None:
    """Every figure stands in the text, and every plot in the page."""
    reader = Reader(re.sub(r"(?s)<script>.*</script>", "", page()))
    shown, it = reader.text, of_sample("pattern=push to=dataflow")
    assert f"{it.latency * 1e6:.2f}" in shown
    assert f"{it.bound * 1e6:.2f}" in shown
    assert it.bottleneck in shown
    for name in (*it.steps, *it.gains, *(kernel.name for kernel in it.kernels)):
        assert name in shown
    for moved in it.moved.values():
        for tensor, size in moved.items():
            assert tensor in shown
            assert f"{size:,.0f}" in shown
    for room in it.rooms:
        assert f"{room.used:,.0f}" in shown
    for path in (PROGRAM, MACHINE):
        assert sha256(path.read_bytes()).hexdigest() in shown
    assert "strategy for @ag_gemm" in shown
    assert "bsp.mlir" in shown
    assert "bsp-to-dataflow{pattern=push" in shown
    assert reader.tags["svg"] == 7


def test_the_sums_of_a_page_are_its_headline() -> None:
    """Also of the other plan, and of bytes of device memory and L2."""
    assert "differs" not in page()
    assert page().count("= the latency") == 2
    assert page().count("= the model") == 2
    assert page().count("= what peers read") == 1


def test_trace_of_a_page_has_a_row_for_each_rank() -> None:
    events = expect_a_trace(trace_in(page()))
    assert {event["tid"] for event in events} == {0, 1, 2, 3}
    ends = [float(str(one["ts"])) + float(str(one["dur"])) for one in events]
    latency = of_sample("pattern=push to=dataflow").latency
    assert max(ends) == pytest.approx(latency * 1e6, abs=2e-3)


@pytest.mark.parametrize("pattern", BODIES)
def test_figures_are_the_price(pattern: str) -> None:
    """Steps and bytes add up, and nothing is faster than the bound."""
    it = figures(pattern)
    steps = sum(taxes.total for taxes in it.steps.values())
    assert steps == pytest.approx(it.latency)
    for level, priced in it.priced.items():
        assert conserved(sum(it.moved[level].values()), priced, "it") == "= it"
    pushed, read = it.traffic.sent.values(), it.traffic.received.values()
    assert sum(pushed) == pytest.approx(sum(read))
    assert 0 < it.bound <= it.latency
    assert all(seconds <= it.latency * (1 + 1e-9) for seconds in it.gains.values())
    assert min(it.gains.values()) < it.latency
    assert all(room.used <= room.capacity for room in it.rooms)
    for kernel in it.kernels:
        whole = float(kernel.time.seconds)
        assert sum(kernel.spent.values()) == pytest.approx(whole)


def test_bytes_of_patterns_are_those_of_their_messages() -> None:
    """Each rank sends its 64 x 64 values of 2 bytes to one peer, or loads them."""
    message = 64 * 64 * 2
    assert [*figures("push").traffic.sent.values()] == [message]
    assert figures("push").loaded == {}
    assert sum(figures("pull").loaded.values()) >= message
    assert figures("bsp").flags == 0 < figures("push").flags


def test_the_bottleneck_is_the_largest_tax() -> None:
    it = of_sample("pattern=push to=dataflow")
    assert "largest part of the latency is launch" in it.bottleneck
    assert "launch time: 10 % better" in it.bottleneck
    assert it.gains["launch time"] == min(it.gains.values())


def test_a_program_of_one_rank_has_no_links() -> None:
    options = f'attach-hardware{{path="{MACHINE}"}},triton-distributed{{to=dataflow}}'
    it = plan_figures_of(compiled(PROGRAM, pipeline=options).module)
    assert it.ranks == 1
    assert set(it.moved) == {"HBM", "L2"}
    assert "barrier time" not in it.gains


@exhaustive
def test_a_mapping_has_a_report_too(tmp_path: Path) -> None:
    """The same flag, without a search of all mappings; also of a mapping as input."""
    report, plots = tmp_path / "r.html", tmp_path / "plots"
    done = opt(tmp_path, ON_EDGE, "--report", str(report), program=GEMM)
    assert done.code == 0, done.err
    expect_one_file(report.read_text())
    shown = Reader(report.read_text()).text
    assert "= the energy" in shown
    assert "tile factors for @gemm" in shown
    assert "lower bound" in shown
    made = (tmp_path / "out.mlir").rename(tmp_path / "made.mlir")
    assert opt(tmp_path, "", "--plots", str(plots), program=made).code == 0
    names = {path.name for path in plots.iterdir()}
    assert {"waterfall.svg", "waterfall.png", "roofline.svg"} <= names


def test_a_program_without_a_price_has_no_report(tmp_path: Path) -> None:
    done = opt(tmp_path, "decompose", "--report", str(tmp_path / "r.html"))
    assert "there is nothing to report on" in done.sentence
    assert not (tmp_path / "out.mlir").exists()


def test_a_report_is_about_one_program(tmp_path: Path) -> None:
    report = ("--report", str(tmp_path / "r.html"))
    done = opt(tmp_path, "", *report, "--split-input-file")
    assert "leave --split-input-file" in done.sentence
    text = PROGRAM.read_text()
    both = tmp_path / "two.mlir"
    both.write_text(text + text.replace("@ag_gemm", "@again"))
    done = comet_opt_command([str(both), "-p", passes("to=dataflow"), *report])
    assert "2 launch plans" in done.err


def test_a_mapping_is_not_compared_with_a_launch_plan(tmp_path: Path) -> None:
    assert opt(tmp_path, ON_EDGE, program=GEMM).code == 0
    other = (tmp_path / "out.mlir").rename(tmp_path / "other.mlir")
    flags = ("--report", str(tmp_path / "r.html"), "--compare", str(other))
    done = opt(tmp_path, passes("to=dataflow"), *flags)
    assert "0 launch plans" in done.sentence


def test_compare_needs_a_report(tmp_path: Path) -> None:
    assert "--report" in opt(tmp_path, "", "--compare", "other.mlir").sentence
