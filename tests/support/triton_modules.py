"""What tests of emitted Triton share: emit modules, check and compile many at once."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import StringIO
from pathlib import Path

from interpreting import reports, write_modules
from paths import ROOT
from rank_runs import EPOCHS
from semantics import comet_context, parse_module, run_passes
from torch_python import run_python
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.triton import TritonTarget
from comet.runtime.child import Facts
from comet.runtime.command import back_ends, ranks_of
from comet.runtime.request import Request

LOWER = "outline-kernels,lower-to-triton"

COMPILE_MANY = """
import json, sys
from dataclasses import asdict
from comet.runtime.compile_check import all_compiled
for path in sys.argv[2:]:
    for result in all_compiled(path, sys.argv[1].split(",")):
        print(json.dumps({"module": path, **asdict(result)}))
"""

ASSEMBLE_MANY = """
import json, sys
from comet.runtime.assembly import GPUS
from comet.runtime.compile_check import compile_launch, recorded_launches
target, *paths = sys.argv[1:]
for path in paths:
    made = [compile_launch(launch, target) for launch in recorded_launches(path)]
    print(json.dumps([kernel.asm[GPUS[target].assembly] for kernel in made]))
"""


def hardware(name: str) -> str:
    """Return the pass that attaches one of the sample hardware files."""
    return f'attach-hardware{{path="{ROOT / "samples" / "hardware" / name}"}}'


@lru_cache(maxsize=1 << 8)
def emitted(text: str, pipeline: str) -> str:
    """Run passes on IR text and print it as a Triton module; the same text once."""
    return printed(run_passes(parse_module(text), pipeline))


def printed(module: ModuleOp) -> str:
    """Print a lowered module as a Triton module."""
    output = StringIO()
    TritonTarget().emit(comet_context(), module, output)
    return output.getvalue()


def to_triton(module: ModuleOp) -> str:
    """Write kernels as a Triton module; nothing asks if their channels are right."""
    return printed(run_passes(module, "lower-to-triton"))


def check_all(sources: Mapping[str, str], folder: Path) -> dict[str, Facts]:
    """Run modules without a GPU; return what comet-run reports, by name."""
    paths = list(map(str, write_modules(sources, folder)))
    asked = [Request(p, back_ends(ranks_of(p))[0], 3, epochs=EPOCHS) for p in paths]
    found = reports(asked)
    return dict(zip(sources, found, strict=True))


def wrong(sources: Mapping[str, str], folder: Path) -> list[str]:
    """Return the names of modules that do not compute what their reference does."""
    found = check_all(sources, folder)
    return [name for name, report in found.items() if not report["ok"]]


def compile_all(
    sources: Mapping[str, str], folder: Path, targets: str = "sm_90,gfx942"
) -> list[Facts]:
    """Compile modules for GPUs that are not there; return what became of kernels."""
    return compile_files(write_modules(sources, folder), targets)


def assembly_of(
    sources: Mapping[str, str], folder: Path, target: str
) -> dict[str, list[str]]:
    """Compile modules for a GPU that is not there; return the text of each kernel."""
    paths = write_modules(sources, folder)
    done = run_python(["-c", ASSEMBLE_MANY, target, *paths], {"TRITON_INTERPRET": "0"})
    assert done.returncode == 0, done.stderr
    return dict(zip(sources, map(json.loads, done.stdout.splitlines()), strict=True))


def compile_files(
    paths: Sequence[Path], targets: str, import_from: Path | None = None
) -> list[Facts]:
    """The same for files, which may import others from a folder."""
    environment = {"TRITON_INTERPRET": "0"}
    if import_from is not None:
        folders = [str(import_from), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(folders)
    done = run_python(["-c", COMPILE_MANY, targets, *paths], environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
