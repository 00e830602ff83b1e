"""The search for the best mapping of a program, as a function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TypeAlias

from comet.api.answer import Answer, Progress
from comet.api.plugins import load_plugin
from comet.api.program import installed_context, parsed
from comet.api.question import Question
from comet.api.sampling import Samples
from comet.api.saved import saved_passes
from comet.api.versions import versions
from comet.dialects.arch import attached_system
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.attach_hardware import AttachHardwarePass, attach_hardware
from comet.passes.explore.best_first import BestFirst
from comet.passes.explore.certificate import (
    MOST_BYTES,
    Certificate,
    Claim,
    Floor,
    key_text,
)
from comet.passes.explore.constraints import ConstraintError, read_constraints
from comet.passes.explore.lowering import lowered
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.state import Best, Item, State
from comet.passes.explore.structure import REJECTED
from comet.passes.pipeline import spelled
from comet.passes.search import Goal
from comet.tools.diagnostics import UsageError, errors_as_sentences
from comet.yaml_file import read_yaml

Notify: TypeAlias = Callable[[Progress], None]
"""Called whenever a structure has been searched, and at the end."""


def ignored(_progress: Progress) -> None:
    """Do nothing: the default `progress`."""


def explore(
    question: Question, progress: Notify = ignored, *, keeps_best: bool = True
) -> Answer:
    """
    Search until the gap is closed, the time is up, or Ctrl-C interrupts.

    On Ctrl-C, return the best mapping so far, or raise KeyboardInterrupt if there is
    none, or without `keeps_best`.
    Raises CometError if an input is wrong, if there is no valid mapping, or if the time
    is up before any is found.
    """
    with errors_as_sentences(), _located_constraints(question):
        exploration = _exploration(question, progress)
        exploration.keeps_best = keeps_best
        exploration.run()
        exploration.notify(exploration)
        if exploration.best is None:
            seconds = min(exploration.seconds, question.time_limit)
            reason = exploration.refused or exploration.rejection
            raise UsageError(
                f"no valid mapping was found in {seconds:.3g} s; give a longer time "
                f"limit, more samples, or fewer constraints{reason and '; so far '}"
                f"{reason}"
            )
        return _answer(question, exploration, exploration.best)


@contextmanager
def _located_constraints(question: Question) -> Generator[None]:
    """Run the body; an error about a constraint names its line in the file."""
    try:
        yield
    except ConstraintError as error:
        file = read_yaml(question.constraints.text, question.constraints.name)
        raise file.error((error.key,), str(error)) from error


def _exploration(question: Question, progress: Notify) -> Exploration:
    """Return the search for a question, not started."""
    for plugin in question.plugins:
        load_plugin(plugin)
    context = installed_context()
    module = parsed(question.program.text, question.program.name, context)
    constraints = read_constraints(question.constraints.text, question.constraints.name)
    attach_hardware(module, question.hardware.text, question.hardware.name)
    require_accelerator("explore", attached_system(module))
    goal = Goal(question.model, question.objective)
    start = () if question.start is None else saved_passes(question.start)
    space = StructureSpace(
        context,
        module,
        goal,
        constraints,
        start=start,
        allow_artifacts=question.allow_artifacts,
    )
    if question.start is not None:
        _check_start(space, question.start.name)
    sampling = question.sampling
    return Exploration(
        space,
        question.tolerance,
        lambda state: progress(_progress(question, state)),
        time_limit=question.time_limit,
        walk=BestFirst() if sampling is None else Samples(sampling),
    )


def _check_start(space: StructureSpace, name: str) -> None:
    """Raise UsageError if the passes of the start do not map the program."""
    try:
        space.default()
    except REJECTED as error:
        raise UsageError(
            f"{name}: its passes do not map this program on this hardware: {error}"
        ) from error


def _progress(question: Question, state: State) -> Progress:
    return Progress(
        objective=question.objective,
        best=state.objective,
        lower_bound=state.lower_bound,
        gap=state.gap,
        structures=len(state.items),
        closed=_closed(state),
        evaluated=state.evaluated,
    )


def _closed(state: State) -> int:
    return sum(item.finished for item in state.items)


def _answer(question: Question, state: Exploration, best: Best) -> Answer:
    """Map the program by the best passes; return the mapping with its figures."""
    best, mapped = lowered(state, best)
    hardware = AttachHardwarePass(question.hardware.name)
    return Answer(
        latency_cycles=best.cost.latency,
        energy_pj=best.cost.energy,
        objective=question.objective,
        lower_bound=state.known_bound,
        gap_percent=None if state.known_bound is None else 100 * state.gap,
        proven=state.proven,
        space_size=state.size,
        evaluated=state.evaluated,
        pruned_by=state.pruned_by,
        structures=len(state.items),
        structures_closed=_closed(state),
        closed_by=state.closed_by,
        structures_rejected=len(state.space.rejected),
        rejected_by=state.rejected_by,
        bound_of_unreached=None if state.rest == inf else state.rest,
        seconds=state.seconds,
        interrupted=state.interrupted,
        mapping=best.label,
        pipeline=spelled((hardware, *best.passes)),
        model=question.model,
        versions=versions(),
        module=mapped,
        proof=_certificate(question, state, best),
    )


def _value(state: State, best: Best) -> float:
    """Return the objective of a mapping, also of an artifact."""
    return state.goal.rank(best.cost.latency, best.cost.energy)[0]


def _certificate(question: Question, state: State, best: Best) -> Certificate:
    """Return the proof of an answer; one that is too large has a wider gap."""
    value = _value(state, best)
    proof = Certificate(
        program=question.program.text,
        system=Path(question.hardware.name).stem,
        hardware=question.hardware.text,
        constraints=question.constraints.text,
        model=question.model,
        objective=question.objective,
        allow_artifacts=question.allow_artifacts,
        pipeline=spelled(best.passes),
        value=value,
        lower_bound=min(state.lower_bound, value),
        rest=None if state.rest == inf else state.rest,
        claims=tuple(_claim(item, value) for item in state.items),
    )
    fits = len(proof.text()) <= MOST_BYTES
    return proof if fits else proof.merged(state.space.bound())


def _claim(item: Item, value: float) -> Claim:
    """Return the claim for an item; its bound is at most the best value."""
    floors = tuple(
        Floor(tuple(sorted(map(key_text, keys))), cycles, energy)
        for keys, cycles, energy in item.floors
    )
    return Claim(item.label, min(item.bound, value), floors)
