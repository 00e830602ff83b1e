"""What `comet-explore` does once its flags are checked."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib.metadata import version
from io import StringIO
from math import inf
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
from comet.passes.explore.certificate import Certificate, Claim, Floor, key_text
from comet.passes.explore.constraints import Constraints, read_constraints
from comet.passes.explore.search import Exploration, Item
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
    ctx = context()
    module = parsed(Path(options.input).read_text("utf-8"), options.input, ctx)
    exploration = _exploration(options, ctx, module)
    exploration.run()
    mapped = module.clone()
    figures = _answer(exploration, options, ctx, mapped)
    _write(options, mapped)
    if options.certificate is not None:
        text = _certificate(exploration, options).text()
        Path(options.certificate).write_text(text, encoding="utf-8")
    return figures


def context() -> Context:
    """Return a context with every dialect that is installed."""
    known = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        known.register_dialect(name, factory)
    return known


def parsed(text: str, name: str, ctx: Context) -> ModuleOp:
    """Return the verified module in `text`, which is that of the file `name`."""
    module = LocatedParser(ctx, text, name).parse_module()
    verify_definitions(module)
    module.verify()
    return module


def _constraints(path: str | None) -> Constraints:
    return read_constraints(_text(path), path or "")


def _exploration(options: Namespace, ctx: Context, module: ModuleOp) -> Exploration:
    """Attach the hardware to `module`, and return a search in its mappings."""
    constraints = _constraints(options.constraints)
    AttachHardwarePass(path=options.hardware).apply(ctx, module)
    require_accelerator("comet-explore", attached_system(module))
    goal = Goal(options.model, options.objective)
    return Exploration(
        StructureSpace(ctx, module, goal, constraints),
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
    state: Exploration, options: Namespace, ctx: Context, module: ModuleOp
) -> dict[str, object]:
    """Map `module` as the search found best; return what is known about it."""
    if state.best is None:
        raise UsageError(
            f"no valid mapping was found in {options.time_limit:g} s; give a longer "
            "--time-limit, or constrain less"
        )
    passes, cost = state.best.passes, state.best.cost
    run_passes(passes, ctx, module)
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


def _certificate(state: Exploration, options: Namespace) -> Certificate:
    assert state.best is not None
    return Certificate(
        program=Path(options.input).read_text("utf-8"),
        system=Path(options.hardware).stem,
        hardware=Path(options.hardware).read_text("utf-8"),
        constraints=_text(options.constraints),
        model=options.model,
        objective=options.objective,
        pipeline=spelled(state.best.passes),
        value=state.objective,
        lower_bound=state.lower_bound,
        rest=None if state.rest == inf else state.rest,
        claims=tuple(map(_claim, state.items)),
    )


def _claim(item: Item) -> Claim:
    floors = tuple(
        Floor(tuple(sorted(map(key_text, keys))), cycles, energy)
        for keys, cycles, energy in item.floors
    )
    bound = None if item.bound == inf else item.bound
    return Claim(item.structure.label, bound, floors)


def _text(path: str | None) -> str:
    return "" if path is None else Path(path).read_text("utf-8")


def _write(options: Namespace, mapped: ModuleOp) -> None:
    if options.emit is not None:
        write_folder(Path(options.emit), write_files(mapped))
    if options.output is not None:
        text = StringIO()
        Printer(stream=text).print_op(mapped)
        Path(options.output).write_text(f"{text.getvalue()}\n", encoding="utf-8")
