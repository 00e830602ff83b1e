"""Writes rows of the nodes of a tile tree as plan entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from comet.dialects.schedule_node import NodeOp
from comet.passes.plan_string import PlanEntry, Rows, node_kinds, node_level

PREFERRED = ("contract", "reduce")
"""Kinds of op by which a reader knows a node, best first."""

SHAPE_ONLY = frozenset({"yield", "fill", "temporal"})
"""Kinds that say little; they name a node where nothing else does."""


def plan_entries(rows: Mapping[NodeOp, Rows]) -> tuple[PlanEntry, ...]:
    """
    Return entries that give every node its rows, one for the nodes of equal rows.

    Nodes of one level with different rows are told apart by the kinds of their ops; a
    later entry overrides an earlier one. Nodes without rows need no entry.
    """
    entries: list[PlanEntry] = []
    for level in dict.fromkeys(node_level(node) for node in rows):
        groups: dict[Rows, list[frozenset[str]]] = {}
        for node, its_rows in rows.items():
            if node_level(node) == level and its_rows:
                groups.setdefault(its_rows, []).append(node_kinds(node))
        entries += _level_entries(level, groups)
    return tuple(entries)


def _level_entries(
    level: str, groups: Mapping[Rows, Sequence[frozenset[str]]]
) -> list[PlanEntry]:
    """Return one entry for each group, those with the fewest kinds first."""
    ordered = sorted(groups.items(), key=lambda group: min(map(len, group[1])))
    if len(ordered) == 1:
        return [PlanEntry(level, None, ordered[0][0])]
    entries: list[PlanEntry] = []
    for index, (rows, nodes) in enumerate(ordered):
        others = frozenset[str]().union(
            *(kinds for _, group in ordered[:index] for kinds in group)
        )
        entries.append(PlanEntry(level, _kind(nodes, others), rows))
    return entries


def _kind(nodes: Sequence[frozenset[str]], others: frozenset[str]) -> str | None:
    """Return a kind that all of `nodes` have and none of `others`, None without one."""
    common = {kind for kind in nodes[0] if all(kind in node for node in nodes)} - others
    best = [kind for kind in PREFERRED if kind in common]
    plain = sorted(common - SHAPE_ONLY)
    vague = sorted(common & (SHAPE_ONLY - {"yield"}))
    return next(iter((*best, *plain, *vague)), None)
