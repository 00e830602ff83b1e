"""The example of the document on the runtime does what it says."""

import re
import subprocess
from pathlib import Path

from covering import exhaustive
from paths import ROOT
from torch_python import run_python

TEXT = (ROOT / "docs" / "multi-gpu-runtime.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
(PROMISE,) = re.findall(r"# (\[\d.*\])", EXAMPLE)


def output(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the example, or a change of it, as a script."""
    script = folder / "example.py"
    script.write_text(source)
    return run_python([script], {"TRITON_INTERPRET": "1"})


def test_the_example_prints_what_it_promises(tmp_path: Path):
    done = output(EXAMPLE, tmp_path)
    assert done.stdout.strip() == PROMISE, done.stderr


@exhaustive
def test_the_example_runs_in_processes_too(tmp_path: Path):
    source = EXAMPLE.replace("import scheduler", "import processes")
    done = output(source.replace("scheduler.run", "processes.run"), tmp_path)
    assert done.stdout.strip() == PROMISE, done.stderr


def test_one_buffer_instead_of_two_is_a_race(tmp_path: Path):
    done = output(EXAMPLE.replace("(epoch % 2) * W * N", "0"), tmp_path)
    assert "RaceError: race on recv[" in done.stderr
