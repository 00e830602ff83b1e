"""Writes rows of the nodes of a tile tree as plan entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.plan_string import (
    PlanEntry,
    Rows,
    entry_for,
    node_kinds,
    node_level,
)

PREFERRED = ("contract", "reduce")
"""Kinds of op by which a reader knows a node, best first."""

SHAPE_ONLY = frozenset({"yield", "fill", "temporal"})
"""Kinds that say little; they name a node where nothing else does."""


Kinds: TypeAlias = frozenset[str]


def plan_entries(rows: Mapping[NodeOp, Rows]) -> tuple[PlanEntry, ...]:
    """
    Return entries that give every node its rows, one for the nodes of equal rows.

    Nodes of one level with different rows are told apart by the kinds of their ops; a
    later entry overrides an earlier one. Nodes that nothing tells apart share an entry
    with the larger factors: a node takes those of its own dimensions.
    """
    entries: list[PlanEntry] = []
    for level in dict.fromkeys(node_level(node) for node in rows):
        nodes = {n: r for n, r in rows.items() if node_level(n) == level and r}
        found = _level_entries(level, nodes)
        if not all(_obeyed(node, its, found) for node, its in nodes.items()):
            found = [PlanEntry(level, None, _merged(list(nodes.values())))]
        entries += found
    return tuple(entries)


def _merged(rows: Sequence[Rows]) -> Rows:
    """Return one row for each dimension, with its largest factor."""
    factors: dict[str, int] = {}
    for dim, factor in (row for its_rows in rows for row in its_rows):
        factors[dim] = max(factor, factors.get(dim, 1))
    return tuple(factors.items())


def _obeyed(node: NodeOp, rows: Rows, entries: Sequence[PlanEntry]) -> bool:
    """Whether `entries` give a node at least its factors."""
    if (entry := entry_for(node, entries)) is None:
        return False
    given = dict(entry.rows)
    return all(given.get(dim, 0) >= factor for dim, factor in rows)


def _level_entries(level: str, nodes: Mapping[NodeOp, Rows]) -> list[PlanEntry]:
    """Return one entry for each group of nodes, those with the fewest kinds first."""
    alike: dict[Kinds, list[Rows]] = {}
    for node, rows in nodes.items():
        alike.setdefault(node_kinds(node), []).append(rows)
    groups: dict[Rows, list[Kinds]] = {}
    for kinds, its_rows in alike.items():
        groups.setdefault(_merged(its_rows), []).append(kinds)
    ordered = sorted(groups.items(), key=lambda group: min(map(len, group[1])))
    if len(ordered) == 1:
        return [PlanEntry(level, None, ordered[0][0])]
    entries: list[PlanEntry] = []
    for index, (rows, members) in enumerate(ordered):
        others = {kind for _, group in ordered[:index] for ks in group for kind in ks}
        entries.append(PlanEntry(level, _kind(members, others), rows))
    return entries


def _kind(nodes: Sequence[Kinds], others: AbstractSet[str]) -> str | None:
    """Return a kind that all of `nodes` have and none of `others`, None without one."""
    common = {kind for kind in nodes[0] if all(kind in node for node in nodes)} - others
    best = [kind for kind in PREFERRED if kind in common]
    plain = sorted(common - SHAPE_ONLY)
    vague = sorted(common & (SHAPE_ONLY - {"yield"}))
    return next(iter((*best, *plain, *vague)), None)
