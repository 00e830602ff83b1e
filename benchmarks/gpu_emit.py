"""Writes a folder that checks and times kernels where there is no compiler."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from gpu_candidates import with_tiling
from gpu_cases import Wanted
from gpu_programs import Program
from gpu_run.case import MANIFEST, MODULES, Case, Manifest, Predicted
from ladder_programs import PATTERNS, after_passes, predicted_times
from ladder_programs import Case as Source
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.triton import emitted
from comet.cost.estimate import CostError
from comet.passes.pipeline import AUTO, noted, run_passes
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.tile import TilePass

HERE = Path(__file__).parent
RUNTIME = HERE.parent / "src" / "comet"
PACKAGE = '"""The runtime of emitted modules; the compiler is not on this machine."""\n'

PACKAGES = {
    "gpu_run": HERE / "gpu_run",
    "gpu_device": HERE / "gpu_device",
    "comet/runtime": RUNTIME / "runtime",
}
"""What is copied, by where it lies in the folder."""

LARGEST = 30 * 10**6
"""Bytes that a folder may have, so that it is quickly copied."""


@dataclass(frozen=True)
class Emitted:
    """What became of a program."""

    text: str = ""
    """The Triton module, or nothing."""
    predicted: Predicted | None = None
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    """Of the pass that compiles it, with the fusion and the tiles that it chose."""
    refused: str = ""
    """The compiler's reason, where it has none."""
    inapplicable: bool = False
    """Whether that is so by the nature of the pattern."""


def emitted_program(program: Program) -> Emitted:
    """Compile and price a program; refusals are results."""
    ranks = program.compiler.ranks
    source = Source("", ranks, program.text)
    try:
        program = with_tiling(program)
        passes = [program.compiler]
        plan = after_passes(source, program.hardware, passes, one_gpu=ranks > 1)
        seconds = predicted_times(plan)
        options = options_of(settled(program.compiler, plan))
        # The passes of the pipeline behind the plan, which is priced between them.
        run_passes(replace(program.compiler, to="tl").to_target(plan), Context(), plan)
        return Emitted(emitted(plan), seconds, options)
    except (DiagnosticException, CostError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        return Emitted(refused=reason, inapplicable="does not apply" in reason)


def settled(compiler: TritonDistributedPass, plan: ModuleOp) -> TritonDistributedPass:
    """Return a pass that makes the launch plan again without choosing kernels."""
    chosen = {
        option: note
        for option, name in (*FusePass.NOTES.items(), *TilePass.NOTES.items())
        if getattr(compiler, option, None) == AUTO
        and (note := noted(plan, name)) is not None
    }
    return replace(compiler, **chosen)


def options_of(compiler: TritonDistributedPass) -> dict[str, object]:
    """Return the options of a pass that are not the defaults, but where it ends."""
    values = ((each, getattr(compiler, each.name)) for each in fields(compiler))
    return {
        each.name: value
        for each, value in values
        if value != each.default and each.name != "to"
    }


def write_folder(
    folder: Path, wanted: Sequence[Wanted], *, tiny: bool, jobs: int
) -> Manifest:
    """
    Compile what cases need, and write it with what it needs to run.

    Raises `ValueError` where the folder has other things in it, or would be too large.
    """
    _make_room(folder)
    programs = list(dict.fromkeys(p for each in wanted for p in each.programs.values()))
    modules = dict(zip(programs, _all_emitted(programs, jobs), strict=True))
    cases = _distinct(_with_modules(each, modules) for each in wanted)
    manifest = Manifest(tiny, version("comet-compiler"), cases)
    for each in filter(None, (each.text for each in modules.values())):
        (folder / MODULES / file_of(each)).write_text(each)
    _copy_packages(folder)
    (folder / MANIFEST).write_text(manifest.text())
    size = bytes_in(folder)
    if size > LARGEST:
        raise ValueError(
            f"{folder} has {size / 1e6:.1f} MB, more than {LARGEST / 1e6:.0f}; name "
            "fewer groups with --only"
        )
    return manifest


def _all_emitted(programs: Sequence[Program], jobs: int) -> list[Emitted]:
    """Compile programs in so many processes; with one job, in this one."""
    if jobs == 1:
        return list(map(emitted_program, programs))
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return list(pool.map(emitted_program, programs, chunksize=4))


def _make_room(folder: Path) -> None:
    """Make the folder, or empty one that was written before."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise ValueError(f"{folder} has other things in it; name a new folder")
    for name in (MODULES, *PACKAGES):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / MODULES).mkdir(parents=True)


def _distinct(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return cases without comparisons of modules that are compared before."""
    found: dict[object, Case] = {}
    for case in cases:
        form = case.task == "compare" and case.modules
        modules = frozenset(case.modules.values())
        found.setdefault((case.kind, modules) if form else case.id, case)
    return tuple(found.values())


def _with_modules(wanted: Wanted, modules: Mapping[Program, Emitted]) -> Case:
    """
    Return a case with the modules that it needs, or why there are none.

    A form whose module another alternative has is not run again.
    """
    found: dict[str, Emitted] = {}
    same: dict[str, str] = {}
    for name, program in wanted.programs.items():
        made = modules[program]
        twins = (other for other, each in found.items() if each.text == made.text)
        twin = next(twins, None) if made.text and name not in PATTERNS else None
        if twin is None:
            found[name] = made
        else:
            same[name] = twin
    refused = {n: e.refused for n, e in found.items() if e.refused}
    inapplicable = {n for n, e in found.items() if e.inapplicable}
    return replace(
        wanted.case,
        modules={n: file_of(e.text) for n, e in found.items() if e.text},
        options={n: e.options for n, e in found.items() if e.text},
        predicted={n: e.predicted for n, e in found.items() if e.predicted},
        refused={n: why for n, why in refused.items() if n not in inapplicable},
        inapplicable={n: why for n, why in refused.items() if n in inapplicable},
        same=same,
    )


def file_of(text: str) -> str:
    """Return the name of the file of a module: texts that are equal share one."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] + ".py"


def _copy_packages(folder: Path) -> None:
    """Copy what runs the cases, and what emitted modules import."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name, source in PACKAGES.items():
        shutil.copytree(source, folder / name, ignore=ignored)
    (folder / "comet" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    shutil.move(folder / "gpu_run" / "run.py", folder / "run.py")


def bytes_in(folder: Path) -> int:
    """Return the size of all files of a folder together."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
