"""The demonstration: all targets, tables, errors within their tolerances."""

import re
import subprocess
from pathlib import Path

from paths import ROOT
from torch_python import run_python


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python(["-m", "comet.tools.demo"], folder=folder)


def test_the_demo_compiles_for_all_targets(tmp_path: Path):
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    done = demo(tmp_path)
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "out" / "demo" / "comet").iterdir()}
    assert files == {"arch.yaml", "problem.yaml", "mapping.yaml", "constants.yaml"}
    assert (tmp_path / "out" / "demo" / "gemm_softmax.py").exists()
    assert re.search(r"gemm +M=\d+ N=\d+ K=\d+ +GEMM", done.stdout)
    assert re.search(r"latency +[\d,]+ cycles", done.stdout)
    assert re.search(r"energy +[\d,]+ pJ", done.stdout)
    checks = re.findall(r"reference: ([\d.e-]+) \(tolerance ([\d.e-]+);", done.stdout)
    assert len(checks) == 2
    assert all(0 < float(error) <= float(tolerance) for error, tolerance in checks)
    bsp, push = re.findall(r"^(?:bsp|push) .* ([\d.]+) us", done.stdout, re.M)
    assert float(push) < float(bsp)


def test_the_demo_needs_the_checkout(tmp_path: Path):
    done = demo(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("demo: error: samples/gemm_softmax.mlir is not here")
