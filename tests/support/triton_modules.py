"""What tests of emitted Triton share: emit modules, check and compile many at once."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from paths import ROOT
from semantics import comet_context, parse_module, run_passes

from comet.codegen.triton import TritonTarget

LOWER = "outline-kernels,lower-to-triton"

CHECK_MANY = """
import json, sys
from comet.runtime.child import report
from comet.runtime.request import Request
for path in sys.argv[1:]:
    print(json.dumps(report(Request(path, "interpreter", 3))))
"""

COMPILE_MANY = """
import json, sys
from dataclasses import asdict
from comet.runtime.compile_check import all_compiled
for path in sys.argv[2:]:
    for result in all_compiled(path, sys.argv[1].split(",")):
        print(json.dumps({"module": path, **asdict(result)}))
"""


def hardware(name: str) -> str:
    """Return the pass that attaches one of the sample hardware files."""
    return f'attach-hardware{{path="{ROOT / "samples" / "hardware" / name}"}}'


def emitted(text: str, pipeline: str) -> str:
    """Run passes on IR text and print it as a Triton module."""
    module = run_passes(parse_module(text), pipeline)
    output = StringIO()
    TritonTarget().emit(comet_context(), module, output)
    return output.getvalue()


def write_modules(sources: Mapping[str, str], folder: Path) -> list[Path]:
    """Write Python sources to files named by their keys."""
    paths: list[Path] = []
    for name, source in sources.items():
        path = folder / f"{name}.py"
        path.write_text(source)
        paths.append(path)
    return paths


def _run(
    arguments: Sequence[str],
    paths: Sequence[Path],
    interpret: bool,
    import_from: Path | None = None,
) -> list[dict[str, object]]:
    """Run Python in a child process; return the JSON objects that it prints."""
    environment = dict(os.environ, TRITON_INTERPRET=str(int(interpret)))
    if import_from is not None:
        folders = [str(import_from), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(folders)
    command = [sys.executable, *arguments, *map(str, paths)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_all(sources: Mapping[str, str], folder: Path) -> dict[str, dict[str, object]]:
    """Run modules in Triton's interpreter; return what comet-run reports, by name."""
    paths = write_modules(sources, folder)
    reports = _run(["-c", CHECK_MANY], paths, interpret=True)
    return dict(zip(sources, reports, strict=True))


def compile_all(
    sources: Mapping[str, str], folder: Path, targets: str = "sm_90,gfx942"
) -> list[dict[str, object]]:
    """Compile modules for GPUs that are not there; return what became of kernels."""
    return compile_files(write_modules(sources, folder), targets)


def compile_files(
    paths: Sequence[Path], targets: str, import_from: Path | None = None
) -> list[dict[str, object]]:
    """The same for files, which may import others from a folder."""
    arguments = ["-c", COMPILE_MANY, targets]
    return _run(arguments, paths, interpret=False, import_from=import_from)
