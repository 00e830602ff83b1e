"""The benchmark of models of PyTorch runs, at tiny sizes."""

import json
from pathlib import Path

from covering import exhaustive
from paths import ROOT
from torch_python import run_python

SCRIPT = ROOT / "benchmarks" / "torch_models.py"
TINY = ("--tiny", "--only", "gemm_softmax", "--json")


@exhaustive
def test_a_model_is_compiled_and_then_measured(tmp_path: Path):
    file = tmp_path / "found.json"
    for action in ("compile", "time"):
        done = run_python(
            [SCRIPT, action, tmp_path / "kept", *TINY, file],
            {"TRITON_INTERPRET": "1"},
            ROOT / "benchmarks",
        )
        assert done.returncode == 0, done.stderr
        kept = [each.stat().st_mtime_ns for each in tmp_path.glob("kept/*.py")]
        assert len(kept) == 1
    figures = json.loads(file.read_text())["gemm_softmax"]
    assert 0 < figures["comet error"] < 0.01
    assert figures["comet gpu, us"] > 0
