"""benchmarks/calibrate.py: rates that are measured, and the hardware file they make."""

import json
from dataclasses import replace
from pathlib import Path

import calibrate
import pytest
import torch
import yaml
from covering import exhaustive
from gpu_device.calibrate import Calibration, sizes_for
from paths import SUPPORT
from semantics import parse_module, run_passes
from torch_python import run_python

from comet.cost.from_ir.gpus import machine_of
from comet.dialects.arch import attached_system

SCRIPT = Path(calibrate.__file__)
KERNELS = SUPPORT / "device_kernels.py"
SAMPLES = sorted(calibrate.BASE.parent.glob("*x*.yaml"))
MEASURED = Calibration(
    name="NVIDIA H200",
    date="2026-11-22",
    torch="2.11.0",
    triton="3.6.0",
    tensor_tflops={"bf16": 791.23, "f16": 780.0},
    vector_tflops=59.5,
    exp_gops=3901.2,
    hbm_gb_per_s=4312.7,
    l2_gb_per_s=5500.0,
    launch_us=6.25,
    graph_launch_us=1.125,
    dry_run=False,
)
EXCHANGES = {"exchange_us": 0.875, "flag_us": 0.5, "system_flag_us": 1.25}
REMARK = "# measured on NVIDIA H200, 2026-11-22, torch 2.11.0, Triton 3.6.0"


def child(*arguments: str) -> str:
    """Return what a script prints in a process of its own."""
    done = run_python(arguments, {"TRITON_INTERPRET": "0"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@exhaustive
def test_kernels_have_what_they_measure_in_their_assembly() -> None:
    """A thread of 128 has 8 of the 1024 elements, and vectors of 4."""
    found = json.loads(child(str(KERNELS)))
    assert found == {
        "multiply_add": 16 * 8,
        "exponential": 16 * 8,
        "copy": 2 * 2,
        "read": 2,
        "nothing": 1,
        "exchange": 1,
        "system_exchange": 1,
        "cluster_exchange": 1,
    }


def test_a_dry_run_takes_all_steps() -> None:
    text = child(str(SCRIPT), "--dry-run")
    gpu = yaml.safe_load(text)["comet"]["gpu"]
    assert gpu["graph_launch_us"] > 0
    assert gpu["launch_us"] != 4.0
    assert text.count("(a dry run)") == 6


@pytest.mark.parametrize("base", SAMPLES, ids=lambda path: path.stem)
def test_all_but_the_measured_rates_is_kept(base: Path) -> None:
    before = base.read_text()
    after = calibrate.measured_file(before, base.name, MEASURED)
    assert after.count(REMARK) == 6
    old, new = (yaml.safe_load(text)["comet"]["gpu"] for text in (before, after))
    assert new == old | {key: {} for key in old.keys() & {"measured"}} | {
        "tensor_tflops": old["tensor_tflops"] | {"bf16": 791.2, "f16": 780},
        "vector_tflops": old["vector_tflops"] | {"f32": 59.5},
        "hbm_gb_per_s": 4313,
        "l2_gb_per_s": 5500,
        "launch_us": 6.25,
        "graph_launch_us": 1.125,
    }
    kept = [line for line in before.splitlines() if line not in after.splitlines()]
    assert len(kept) == 5 + ("graph_launch_us" in old) + ("measured" in old)
    comments = [line.partition("#")[2] for line in before.splitlines()]
    assert all(comment in after for comment in comments)
    tops = (yaml.safe_load(text)["Hierarchy"] for text in (before, after))
    assert next(tops) == next(tops)


def test_the_file_can_be_attached(tmp_path: Path) -> None:
    """Given results of a GPU, with nothing measured here."""
    results, out = tmp_path / "R.json", tmp_path / "H.yaml"
    calibration = {"calibration": MEASURED.as_json()}
    cases = {"machine/rates": calibration, "exchange": {"exchanges": EXCHANGES}}
    report = {"results": {"speed/one": {"state": "done"}, **cases}}
    results.write_text(json.dumps(report))
    assert calibrate.main(["--from", str(results), "--out", str(out)]) == 0
    module = run_passes(
        parse_module("builtin.module {}"), f'attach-hardware{{path="{out}"}}'
    )
    machine = machine_of(attached_system(module), 1, graph=True)
    assert machine.device.units.tensor["bf16"] == pytest.approx(791.2e12)
    assert machine.device.units.tensor["f32"] == pytest.approx(494.7e12)
    assert machine.device.memory.hbm_bandwidth == pytest.approx(4313e9)
    assert machine.launch == pytest.approx(1.125e-6)
    assert machine.device.times.exchange == pytest.approx(0.875e-6)
    assert machine.device.times.flag_latency == pytest.approx(0.625e-6)


def test_the_file_lies_beside_the_base(tmp_path: Path) -> None:
    base, results = tmp_path / "mine.yaml", tmp_path / "R.json"
    base.write_text(calibrate.BASE.read_text())
    results.write_text(json.dumps({"calibration": MEASURED.as_json()}))
    assert calibrate.main(["--from", str(results), "--base", str(base)]) == 0
    assert REMARK in (tmp_path / "mine-measured.yaml").read_text()


def test_a_calibration_comes_back_from_json() -> None:
    text = json.dumps(MEASURED.as_json())
    assert Calibration.from_json(json.loads(text)) == MEASURED


def test_a_dry_run_is_said() -> None:
    text = calibrate.BASE.read_text()
    assert "# measured on NVIDIA H200 (a dry run), " in calibrate.measured_file(
        text, "h200x1.yaml", replace(MEASURED, dry_run=True)
    )


def test_sizes_fit_the_l2() -> None:
    sizes = sizes_for(132, 50 * 2**20)
    taken = 2 * 4 * sizes.programs * sizes.l2_block
    assert 50 * 2**20 / 4 < taken <= 50 * 2**20 / 2
    assert 4 * sizes.hbm_programs * sizes.hbm_block > 10 * 50 * 2**20


def test_without_a_gpu_nothing_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert calibrate.main([]) == 1
    assert capsys.readouterr().err == (
        "calibrate: error: torch finds no GPU; use a dry run\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "R.json has no calibration; name results of benchmarks/gpu.py"),
        ("[]", "R.json holds no results; name those of benchmarks/gpu.py"),
        ("{", "R.json is no JSON: "),
        ('{"calibration": {"name": "x"}}', "a calibration without date, torch, "),
    ],
)
def test_results_without_rates_are_errors(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "R.json"
    results.write_text(text)
    assert calibrate.main(["--from", str(results)]) == 1
    assert message in capsys.readouterr().err


def test_the_rates_of_a_dry_run_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "R.json"
    dry = replace(MEASURED, dry_run=True)
    results.write_text(json.dumps({"calibration": dry.as_json()}))
    assert calibrate.main(["--from", str(results)]) == 1
    assert "R.json is of a dry run, whose rates mean nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "base.yaml: No such file or directory"),
        ("a: [", "base.yaml is no YAML: "),
        ("comet: {gpu: {launch_us: 1}}", "base.yaml lacks tensor_tflops, vector_tflop"),
        ("comet: 3", "name the hardware file of a GPU by --base"),
    ],
)
def test_other_files_than_those_of_gpus_are_errors(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base.yaml"
    if text is not None:
        base.write_text(text)
    assert calibrate.main(["--dry-run", "--base", str(base)]) == 1
    assert message in capsys.readouterr().err
