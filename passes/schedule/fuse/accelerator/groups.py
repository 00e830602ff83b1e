"""
Which ops of an accelerator's program share a nest, and which a loop inside it.

A strategy says how far intermediates travel: `none` gives each op a nest of its own, so
that every intermediate goes through the root; `apart` gives each contraction one, and
one to all that is between two of them; `partial` gives each contraction one, with
what follows it, which reads its result from the shared buffer; `full` puts all ops into
one nest and keeps what it can in the cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.state import States
from comet.dialects.compound import CastOp, ContractOp, FillOp, FoldOp
from comet.dialects.compound.dims import names_of
from comet.passes.schedule.fuse.accelerator.borders import follows_gather
from comet.passes.schedule.fuse.strategy import Name, begins_nest

Unit: TypeAlias = tuple[Operation, ...]
"""What one leaf holds: an op, and the casts of its result."""


def units_of(ops: Sequence[Operation]) -> Iterator[Unit]:
    """
    Group each op with the casts of its result, and a gather with its renaming.

    Constants are made where used.
    """
    unit: list[Operation] = []
    for op in ops:
        if isinstance(op, FillOp):
            continue
        made = unit and not isinstance(unit[-1], FoldOp)
        joins = isinstance(op, CastOp) or follows_gather(op)
        follows = joins and made and op.operands[0] in unit[-1].results
        if unit and not follows:
            yield tuple(unit)
            unit = []
        unit.append(op)
    if unit:
        yield tuple(unit)


def _exchanged_early(units: Iterator[Unit]) -> list[Unit]:
    """Put every collective right after the op whose result it takes."""
    ordered: list[Unit] = []
    for unit in units:
        place = len(ordered)
        if isinstance(unit[0], CollectiveOp):
            taken = unit[0].operands[0].owner
            makers = [index for index, made in enumerate(ordered) if taken in made]
            place = makers[-1] + 1 if makers else place
        ordered.insert(place, unit)
    return ordered


def nest_groups(
    ops: Sequence[Operation], states: States, name: Name
) -> list[list[Unit]]:
    """
    Return the units of each nest.

    Collectives, and what an instance does between two of them, stay with their operand.
    """
    groups: list[list[Unit]] = []
    home: dict[SSAValue, list[Unit]] = {}
    for unit in _exchanged_early(units_of(ops)):
        made = [home[value] for value in unit[0].operands if value in home]
        after = bool(groups) and has_contraction(groups[-1][0][0])
        if isinstance(unit[0], CollectiveOp) or _at_root(unit, states):
            group = (made or groups or [[]])[-1]
        elif groups and not begins_nest(name, has_contraction(unit[0]), after):
            group = groups[-1]
        else:
            group = list[Unit]()
        if not group:
            groups.append(group)
        group.append(unit)
        home.update((result, group) for op in unit for result in op.results)
    return groups


def _at_root(unit: Unit, states: States) -> bool:
    """Return whether `unit` runs on what a gather has left to one instance only."""
    return any(states[value].rooted for value in unit[0].operands)


@dataclass(frozen=True)
class Segment:
    """Units that share a node at the shared buffer; those of a fold are its loop."""

    units: tuple[Unit, ...]
    fold: FoldOp | None = None


def has_contraction(op: Operation) -> bool:
    """Return whether `op` is a contraction, or a fold that needs one in every step."""
    return any(isinstance(inner, ContractOp) for inner in op.walk())


def segments(units: Sequence[Unit]) -> Iterator[Segment]:
    """Part `units` into the loops of folds and what is between them."""
    waiting = list(units)
    while (place := _first_fold(waiting)) is not None:
        fold = waiting[place][0]
        assert isinstance(fold, FoldOp)
        taken = _absorbed(fold, waiting[:place])
        before = tuple(unit for unit in waiting[:place] if unit not in taken)
        if before:
            yield Segment(before)
        yield Segment(tuple(taken), fold)
        del waiting[: place + 1]
    if waiting:
        yield Segment(tuple(waiting))


def _first_fold(units: Sequence[Unit]) -> int | None:
    folds = (i for i, unit in enumerate(units) if isinstance(unit[0], FoldOp))
    return next(folds, None)


def _absorbed(fold: FoldOp, units: Sequence[Unit]) -> list[Unit]:
    """Return the ones of `units` that make chunks which only the loop needs."""
    inside: set[Operation] = {fold}
    taken: list[Unit] = []
    for unit in reversed(units):
        results = [result for op in unit for result in op.results]
        users = {use.operation for result in results for use in result.uses}
        looped = all(fold.dim.data in names_of(result) for result in results)
        if looped and users <= {*inside, *unit} and not _exchanges(unit):
            inside |= set(unit)
            taken.insert(0, unit)
    return taken


def _exchanges(unit: Unit) -> bool:
    return isinstance(unit[0], CollectiveOp)
