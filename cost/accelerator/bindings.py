"""
The groups, lanes and pipeline stages that bindings make of siblings.

Neighbours bound sequentially run one after the other and form one group; a node with
only pipeline bindings is a separate stage; a node with only parallel or sharing
bindings belongs to no group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comet.cost.accelerator.problem import (
    Collective,
    Node,
    Tile,
)
from comet.kinds import BindingKind


@dataclass(frozen=True)
class Group:
    """Children that share one time slot of their parent."""

    members: tuple[Node, ...]
    fused: bool
    """Whether sequential bindings made the group."""


def binding_kinds(tile: Tile) -> tuple[BindingKind, ...]:
    """
    The bindings among a tile's children, left to right; empty if there are none.
    """
    return tuple(b.kind for b in tile.bindings if b is not None)


def binding_of(parent: Tile | None, child: Node) -> BindingKind | None:
    """
    The binding before a child in the file: to its right sibling; for the last child, to
    its left one.
    """
    if parent is None or not (kinds := binding_kinds(parent)):
        return None
    position = next(i for i, c in enumerate(parent.children) if c is child)
    return kinds[min(position, len(kinds) - 1)]


def group_children(tile: Tile) -> tuple[Group, ...]:
    """
    The groups of a tile's children, in the order of the COMET tool's pipelines.

    The tool orders stages by address: single collectives, then single tiles, each in
    document order, then fused groups.
    """
    kinds = binding_kinds(tile)
    if not kinds:
        return (Group((tile.children[-1],), fused=False),)
    fused = _sequential_runs(tile.children, kinds)
    taken = {id(node) for run in fused for node in run}
    singles: list[Node] = []
    for position, kind in enumerate(kinds):
        if kind is BindingKind.PIPELINE:
            for node in tile.children[position : position + 2]:
                if id(node) not in taken:
                    singles.append(node)
                    taken.add(id(node))
    singles.sort(key=lambda node: (not isinstance(node, Collective), node.index))
    return tuple(Group((node,), fused=False) for node in singles) + tuple(
        Group(run, fused=True) for run in fused
    )


def _sequential_runs(
    children: Sequence[Node], kinds: Sequence[BindingKind]
) -> list[tuple[Node, ...]]:
    runs: list[tuple[Node, ...]] = []
    run: list[Node] = []
    for position, kind in enumerate(kinds):
        if kind is BindingKind.SEQUENTIAL:
            run += [
                node for node in children[position : position + 2] if node not in run
            ]
        elif run:
            runs.append(tuple(run))
            run = []
    return [*runs, tuple(run)] if run else runs


def lanes_of(tile: Tile) -> tuple[tuple[Group, ...], ...]:
    """
    The groups of a tile's children as lanes that run in parallel.

    Sequential bindings bind tightest and make groups, pipelines join groups into a
    lane, parallel and sharing bindings separate lanes. Every child is in exactly one
    group.
    """
    kinds = binding_kinds(tile)
    if not kinds:
        fused = len(tile.children) > 1
        return ((Group(tile.children, fused=fused),),)
    lanes: list[tuple[Group, ...]] = []
    lane: list[Group] = []
    run: list[Node] = [tile.children[0]]
    for kind, node in zip(kinds, tile.children[1:], strict=True):
        if kind is BindingKind.SEQUENTIAL:
            run.append(node)
            continue
        lane.append(Group(tuple(run), fused=len(run) > 1))
        run = [node]
        if kind is not BindingKind.PIPELINE:
            lanes.append(tuple(lane))
            lane = []
    lane.append(Group(tuple(run), fused=len(run) > 1))
    return (*lanes, tuple(lane))


def is_pipeline(tile: Tile) -> bool:
    """Whether the COMET tool overlaps the children of a temporal node."""
    kinds = binding_kinds(tile)
    return not tile.spatial and bool(kinds) and BindingKind.SEQUENTIAL not in kinds


def stages_of(tile: Tile) -> tuple[Node, ...]:
    """
    The child that each stage of a pipelined temporal node belongs to, in order.

    A collective is one stage, and so is each group of a spatial child.
    """
    return tuple(child for child in tile.children for _ in range(_stage_count(child)))


def _stage_count(child: Node) -> int:
    if isinstance(child, Tile):
        return len(group_children(child)) if child.spatial or child.is_leaf else 0
    return 1


def stalls_read(position: int, stages: int, iterations: int) -> int:
    """
    How many stalls of the stage at `position` the COMET tool may read.

    It reads the stalls of a stage for the time in which the longest stage does not run:
    the last iterations of a stage after it, or the first ones of a stage before it, as
    many as there are stages up to it. Which stage is the longest depends on costs, so
    this is the maximum over all stages.
    """
    return iterations if position else min(iterations, stages - 1)


def tags_of(member: Node) -> frozenset[str]:
    """The tags of the entries that a spatial node moves for one of its children."""
    if isinstance(member, Collective):
        return frozenset({member.tag})
    entries = member.entries if isinstance(member, Tile) else ()
    return frozenset(entry.tag for entry in entries)


def charged_level(tile: Tile, member: Node) -> str | None:
    """
    The level at which the COMET tool counts a child for which `tile` moves no tensor.

    It is the source of the last entry whose destination is a level of the child; None
    if there is no such entry.
    """
    if isinstance(member, Collective):
        levels = {member.level}
    else:
        entries = member.entries if isinstance(member, Tile) else ()
        levels = {entry.source for entry in entries}
    found = [e.source for e in tile.entries if e.destination in levels]
    return found[-1] if found else None


def may_hide(
    member: Node, group: Group, binding: BindingKind | None, *, dependent: bool
) -> bool:
    """
    Whether a stream may overlap with the work of a group's member (COMET tool).

    With a collective it never may. In a sequential group, or below a node that is
    itself bound sequentially, a dependent tensor waits for its producer.
    """
    if isinstance(member, Collective):
        return False
    if group.fused or binding is BindingKind.SEQUENTIAL:
        return not dependent
    return True
