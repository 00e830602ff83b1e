"""benchmarks/compile_sizes.py: its table, of one small size."""

import subprocess

from covering import exhaustive
from paths import ROOT
from torch_python import run_python

SCRIPT = ROOT / "benchmarks" / "compile_sizes.py"


def run(*arguments: str, interpret: bool = False) -> subprocess.CompletedProcess[str]:
    return run_python([SCRIPT, *arguments], {"TRITON_INTERPRET": str(int(interpret))})


@exhaustive
def test_patterns_that_make_the_same_module_share_a_row() -> None:
    patterns = ("bsp", "wait", "push", "persistent")
    done = run(
        *("--workloads", "ag_gemm_k", "--rows", "1", "--ranks", "2"),
        *("--patterns", *patterns, "--targets", "sm_90"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    columns, _, *rows = (line.split(" | ") for line in done.stdout.splitlines())
    rows, totals = rows[: len(patterns) - 1], rows[-1]
    assert columns[:4] == ["| program", "ranks", "pattern", "target"]
    assert [row[2] for row in rows] == ["bsp", "wait push", "persistent"]
    assert totals[:4] == ["| ag_gemm_k", "sm_90", "4", "3"]
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        assert (cells["| program"], cells["ranks"]) == ("| ag_gemm_k M=1", "2")
        assert "w4 s" in cells["tiles"]
        assert 0 < int(cells["registers"]) <= 255
        assert cells["spilled"] == "0"


@exhaustive
def test_an_interpreting_process_is_refused() -> None:
    done = run(interpret=True)
    assert done.returncode == 1
    assert done.stderr == "compile_sizes: error: TRITON_INTERPRET is set\n"
