"""The target `taxes`: a table with units, and a trace of the same timeline."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from html_pages import expect_a_trace
from paths import HARDWARE, SAMPLES
from rank_plans import BODIES, hardware_pass, program_text
from semantics import parse_module, run_passes
from tool_run import comet_opt
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.taxes import MODEL, TaxesTarget
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import BarrierOp, KernelOp, ProgramOp


def priced(pattern: str) -> ModuleOp:
    passes = f"{hardware_pass()},annotate-cost"
    return run_passes(parse_module(program_text(pattern)), passes)


def table(module: ModuleOp, target: TaxesTarget | None = None) -> str:
    output = StringIO()
    (target or TaxesTarget()).emit(Context(), module, output)
    return output.getvalue()


def numbers(text: str, row: str) -> list[float]:
    """Return the microseconds of a row."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"{row} "))
    return [float(number) for number in re.findall(r"([\d.]+) us", line)]


@pytest.mark.parametrize("pattern", BODIES)
def test_columns_and_rows_add_up(pattern: str):
    text = table(priced(pattern))
    *lines, blank, model = text.splitlines()
    assert (blank, model) == ("", MODEL)
    latency = re.fullmatch(r"@f on 2 ranks of @mi300x8: ([\d.]+) us", lines[0])
    assert latency is not None
    *parts, total = numbers(text, "total")
    assert total == float(latency[1])
    assert sum(parts) == pytest.approx(total, abs=0.03)
    rows = [line.split("  ")[0] for line in lines[3:-2]]
    totals = [numbers(text, row)[-1] for row in rows]
    assert sum(totals) == pytest.approx(total, abs=0.03)


def test_a_row_for_each_step():
    lines = table(priced("bsp")).splitlines()[:-2]
    names = [re.split(r"  +", line)[0] for line in lines[2:]]
    steps = ["barrier 1", "gather", "barrier 2", "gemm"]
    assert names == ["step", *steps, "total", "fraction"]
    assert lines[3].split("  ")[-1].strip() == "0.0 kB"
    shares = re.findall(r"([\d.]+) %", lines[-1])
    assert sum(map(float, shares[:-1])) == pytest.approx(100, abs=0.3)


@pytest.mark.parametrize("pattern", BODIES)
def test_annotations_say_the_same(pattern: str):
    module = priced(pattern)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    whole = estimate_of(program)
    assert whole is not None
    busy, launch, synchronization, locality, total = numbers(table(module), "total")
    assert whole.latency == pytest.approx(total * 1000, abs=10)
    assert whole.launch_tax == pytest.approx(launch * 1000, abs=10)
    assert whole.synchronization_tax == pytest.approx(synchronization * 1000, abs=10)
    assert whole.locality_tax == pytest.approx(locality * 1000, abs=10)
    assert busy > 0
    kernels = [op for op in program.body.block.ops if isinstance(op, KernelOp)]
    meets = [op for op in program.body.block.ops if isinstance(op, BarrierOp)]
    meets = [op for op in meets if op.local is None]
    figures = [estimate_of(op) for op in (*kernels, *meets)]
    latencies = [each.latency for each in figures if each is not None]
    assert len(latencies) == len(figures)
    assert sum(latencies) == pytest.approx(whole.latency, abs=10)


def test_replayed_graphs_and_inputs_in_place():
    module = priced("pull")
    eager = numbers(table(module), "total")
    graph = numbers(table(module, TaxesTarget(graph=True)), "total")
    assert eager[1] == 12.0
    assert graph[1] == 3.0
    symmetric = table(module, TaxesTarget(in_place=True))
    assert numbers(symmetric, "total")[1] == 6.0
    assert "copy" not in symmetric


@pytest.mark.parametrize("pattern", BODIES)
def test_the_trace_is_the_timeline(pattern: str, tmp_path: Path):
    path = tmp_path / "t.json"
    text = table(priced(pattern), TaxesTarget(trace=str(path)))
    trace = json.loads(path.read_text())
    expect_a_trace(trace)
    rows = {event["tid"] for event in trace["traceEvents"]}
    assert rows == {0, 1}
    latency = numbers(text, "total")[-1]
    for row in rows:
        events = [
            event
            for event in trace["traceEvents"]
            if event["ph"] == "X" and event["tid"] == row
        ]
        ends = [round(1000 * (event["ts"] + event["dur"])) for event in events]
        starts = [round(1000 * event["ts"]) for event in events]
        assert starts == [0, *ends[:-1]]
        assert ends[-1] == pytest.approx(1000 * latency, abs=5)
    named = [event["args"]["name"] for event in trace["traceEvents"][1:3]]
    assert named == ["rank 0", "rank 1"]


@pytest.mark.parametrize("pattern", ["bsp", "push"])
def test_the_pipeline_may_stop_at_the_launch_plan(pattern: str):
    sample = (SAMPLES / "ag_gemm.mlir").read_text()
    options = f"ranks=4 pattern={pattern} to=dataflow"
    module = run_passes(
        parse_module(sample), f"{hardware_pass()},triton-distributed{{{options}}}"
    )
    assert "@ag_gemm on 4 ranks of @mi300x8: " in table(module)


def test_rejects_what_is_no_launch_plan():
    bare = parse_module("func.func @f() {\n  func.return\n}")
    with pytest.raises(DiagnosticException, match="has no launch plan; run attach"):
        table(bare)
    with pytest.raises(DiagnosticException, match="has no attached hardware; run"):
        table(parse_module(program_text("push")))


def test_rejects_a_place_it_cannot_write(tmp_path: Path):
    target = TaxesTarget(trace=str(tmp_path / "no" / "t.json"))
    with pytest.raises(DiagnosticException, match=r"cannot write '.*t\.json': No such"):
        table(priced("bsp"), target)


def test_rejects_hardware_without_a_gpu():
    edge = hardware_pass("edge")
    text = program_text("bsp", mesh="edge")
    with pytest.raises(DiagnosticException, match="@edge is no GPU"):
        table(run_passes(parse_module(text), edge))


PRODUCT = """
func.func @main(%a: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xf8E4M3FN>)
    -> tensor<64x64xf8E4M3FN> {
  %c = compound.gemm_softmax %a, %b : (tensor<64x64xf8E4M3FN>,
      tensor<64x64xf8E4M3FN>) -> tensor<64x64xf8E4M3FN>
  func.return %c : tensor<64x64xf8E4M3FN>
}
"""


def test_floats_of_8_bits_are_called_as_in_the_hardware_file(tmp_path: Path):
    path = HARDWARE / "h200x1.yaml"
    lacking = tmp_path / "h200x1.yaml"
    lacking.write_text(path.read_text().replace(", f8: 1978.9", ""))
    pipeline = 'attach-hardware{{path="{}"}},triton-distributed{{to=dataflow}}'
    assert "total" in comet_opt(PRODUCT, pipeline.format(path), "taxes").out
    found = comet_opt(PRODUCT, pipeline.format(lacking), "taxes").sentence
    assert "no tensor_tflops for f8; it has f64, f32, f16, bf16, i8; add it" in found
