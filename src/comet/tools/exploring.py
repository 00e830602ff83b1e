"""What `comet-explore` does once its flags are checked."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from time import monotonic

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.universe import Universe

from comet.codegen.comet import write_files, write_folder
from comet.dialects.arch import attached_system
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.explore.constraints import Constraints, read_constraints
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.pipeline import run_passes
from comet.passes.search import Goal
from comet.tools.checks import verify_definitions
from comet.tools.diagnostics import UsageError
from comet.tools.located_parser import LocatedParser
from comet.tools.pass_list import spelled

PACKAGES = ("comet-compiler", "xdsl", "numpy")
"""The packages whose versions an answer names."""

EVERY = 10.0
"""Seconds between lines of progress."""


def explored(options: Namespace) -> dict[str, object]:
    """
    Search, write the files that the flags ask for, and return the keys of `--json`.

    Raises UsageError if the time is up before any mapping is found.
    """
    context = _context()
    module = _module(options.input, context)
    exploration = _exploration(options, context, module)
    exploration.run()
    mapped = module.clone()
    figures = _answer(exploration, options, context, mapped)
    _write(options, mapped)
    return figures


def _context() -> Context:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def _module(path: str, context: Context) -> ModuleOp:
    module = LocatedParser(context, Path(path).read_text("utf-8"), path).parse_module()
    verify_definitions(module)
    module.verify()
    return module


def _constraints(path: str | None) -> Constraints:
    if path is None:
        return Constraints()
    return read_constraints(Path(path).read_text("utf-8"), path)


def _exploration(options: Namespace, context: Context, module: ModuleOp) -> Exploration:
    """Attach the hardware to `module`, and return a search in its mappings."""
    constraints = _constraints(options.constraints)
    AttachHardwarePass(path=options.hardware).apply(context, module)
    require_accelerator("comet-explore", attached_system(module))
    goal = Goal(options.model, options.objective)
    return Exploration(
        StructureSpace(context, module, goal, constraints),
        options.time_limit,
        options.tolerance,
        _Progress(),
    )


class _Progress:
    """Prints how far a search is, at most every `EVERY` seconds."""

    def __init__(self) -> None:
        self._next = monotonic() + EVERY

    def __call__(self, state: Exploration) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + EVERY
            finished = sum(item.finished for item in state.items)
            print(
                f"best {state.objective:,.0f}, bound {state.lower_bound:,.0f}, gap "
                f"{100 * state.gap:.1f} %, {finished} of {len(state.items)} structures "
                "closed",
                file=sys.stderr,
            )


def _answer(
    state: Exploration, options: Namespace, context: Context, module: ModuleOp
) -> dict[str, object]:
    """Map `module` as the search found best; return what is known about it."""
    if state.best is None:
        raise UsageError(
            f"no valid mapping was found in {options.time_limit:g} s; give a longer "
            "--time-limit, or constrain less"
        )
    passes, cost = state.best.passes, state.best.cost
    run_passes(passes, context, module)
    return {
        "latency_cycles": cost.latency,
        "energy_pj": cost.energy,
        "edp": cost.latency * cost.energy,
        "objective": options.objective,
        "lower_bound": state.lower_bound,
        "gap_percent": 100 * state.gap,
        "proven": state.proven,
        "space_size": state.size,
        "evaluated": state.evaluated,
        "pruned": state.size - state.evaluated,
        "structures": len(state.items),
        "structures_closed": sum(item.finished for item in state.items),
        "structures_rejected": len(state.space.rejected),
        "seconds": state.seconds,
        "mapping": state.best.label,
        "pipeline": f'attach-hardware{{path="{options.hardware}"}},{spelled(passes)}',
        "model": options.model,
        "versions": {
            name: version(name) for name in ("comet-compiler", "xdsl", "numpy")
        },
    }


def _write(options: Namespace, mapped: ModuleOp) -> None:
    if options.emit is not None:
        write_folder(Path(options.emit), write_files(mapped))
    if options.output is not None:
        text = StringIO()
        Printer(stream=text).print_op(mapped)
        Path(options.output).write_text(f"{text.getvalue()}\n", encoding="utf-8")
