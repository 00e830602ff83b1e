"""
Which ops of an accelerator's program share a nest, and which of them a fold's loop.

`none` gives each op its own nest, so every intermediate goes through the root memory;
`isolate_contractions` gives each contraction a nest, and one to all ops between two
contractions; `partial` gives each contraction a nest with its epilogue, which reads the
product from the shared buffer; `full` puts all ops into one nest and keeps values in
the cores if possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.state import States
from comet.dialects.compound import CastOp, ContractOp, FoldOp
from comet.dialects.compound.copied import is_copied, origin_of, readers_of
from comet.dialects.compound.dims import names_of
from comet.passes.schedule.fuse.accelerator.borders import follows_gather
from comet.passes.schedule.fuse.strategy import Name, begins_nest

Unit: TypeAlias = tuple[Operation, ...]
"""The ops of one leaf: an op, and the casts of its result."""


def units_of(ops: Sequence[Operation]) -> Iterator[Unit]:
    """
    Group each op with the casts of its result, and a gather with its renaming.

    Constants, masks and other casts are left out: they are copied to their readers.
    """
    home: dict[SSAValue, list[Operation]] = {}
    units: list[list[Operation]] = []
    for op in ops:
        if is_copied(op):
            continue
        joins = isinstance(op, CastOp) or follows_gather(op)
        unit = home.get(op.operands[0]) if joins else None
        if unit is None or isinstance(unit[-1], FoldOp):
            unit = list[Operation]()
            units.append(unit)
        unit.append(op)
        home |= dict.fromkeys(op.results, unit)
    return map(tuple, units)


def _with_early_collectives(units: Iterator[Unit]) -> list[Unit]:
    """Move every collective right after the defining op of its operand."""
    ordered: list[Unit] = []
    for unit in units:
        index = len(ordered)
        if isinstance(unit[0], CollectiveOp):
            operand = unit[0].operands[0].owner
            defining = [i for i, other in enumerate(ordered) if operand in other]
            index = defining[-1] + 1 if defining else index
        ordered.insert(index, unit)
    return ordered


def nest_groups(
    ops: Sequence[Operation], states: States, name: Name
) -> list[list[Unit]]:
    """
    Return the units of each nest.

    A collective is in the nest of its operand, and so are ops on the root of a gather.
    """
    groups: list[list[Unit]] = []
    home: dict[SSAValue, list[Unit]] = {}
    for unit in _with_early_collectives(units_of(ops)):
        read = map(origin_of, unit[0].operands)
        producers = [home[value] for value in read if value in home]
        after = bool(groups) and has_contraction(groups[-1][0][0])
        if isinstance(unit[0], CollectiveOp) or _at_root(unit, states):
            group = (producers or groups or [[]])[-1]
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
    """Return whether `unit` runs only on the root of a gather."""
    return any(states[value].rooted for value in unit[0].operands)


@dataclass(frozen=True)
class Segment:
    """Units of one node over the shared buffer; with a fold, the node is its loop."""

    units: tuple[Unit, ...]
    fold: FoldOp | None = None


def has_contraction(op: Operation) -> bool:
    """Return whether `op` is a contraction, or a fold with one in its step."""
    return any(isinstance(inner, ContractOp) for inner in op.walk())


def segments(units: Sequence[Unit]) -> Iterator[Segment]:
    """Split `units` into segments: the loops of folds, and the units between them."""
    waiting = list(units)
    while (index := _first_fold(waiting)) is not None:
        fold = waiting[index][0]
        assert isinstance(fold, FoldOp)
        absorbed = _absorbed(fold, waiting[:index])
        before = tuple(unit for unit in waiting[:index] if unit not in absorbed)
        if before:
            yield Segment(before)
        yield Segment(tuple(absorbed), fold)
        del waiting[: index + 1]
    if waiting:
        yield Segment(tuple(waiting))


def _first_fold(units: Sequence[Unit]) -> int | None:
    folds = (i for i, unit in enumerate(units) if isinstance(unit[0], FoldOp))
    return next(folds, None)


def _absorbed(fold: FoldOp, units: Sequence[Unit]) -> list[Unit]:
    """Return the units that compute chunks which only the loop of `fold` reads."""
    inside: set[Operation] = {fold}
    absorbed: list[Unit] = []
    for unit in reversed(units):
        results = [result for op in unit for result in op.results]
        users = {op for result in results for op in readers_of(result)}
        looped = all(fold.dim.data in names_of(result) for result in results)
        if looped and users <= {*inside, *unit} and not _exchanges(unit):
            inside |= set(unit)
            absorbed.insert(0, unit)
    return absorbed


def _exchanges(unit: Unit) -> bool:
    return isinstance(unit[0], CollectiveOp)
