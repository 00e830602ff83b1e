"""
The plan string: factors for the nodes of a tile tree, as text.

`DRAM: M=8; GB: M=4; OB/contract: N=2 K=8; OB/map: M=2` gives rows, outermost first, to
the temporal nodes whose results live at a level, optionally only to those that hold an
op of a kind. Where there are several nests, `DRAM/2` is for the second one, and
`OB/2/contract` for the nodes in it that hold an op of a kind. `grid` stands for launch
grids, `fold` for the loops of folds on a mesh. A later entry wins over an earlier one,
and one with a kind over one without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import MapOp, ReduceOp
from comet.dialects.compound.dims import level_of, merged_extents
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import transfers

PLAN = "comet.plan"
"""The attribute of a function that holds its plan string."""

GRID = "grid"
FOLD = "fold"

Rows: TypeAlias = tuple[tuple[str, int], ...]
"""Dimension and factor of each row, outermost first."""

_ENTRY = re.compile(r"\s*(?P<level>\w+)(/(?P<kind>\w+(/\w+)?))?\s*:(?P<rows>[^;:]*)$")
_ROW = re.compile(r"(?P<dim>[A-Za-z_]\w*)=(?P<factor>[1-9]\d*)$")


@dataclass(frozen=True)
class PlanEntry:
    """The rows of the nodes at one level, or of those that hold one kind of op."""

    level: str
    kind: str | None
    rows: Rows

    def __str__(self) -> str:
        where = self.level if self.kind is None else f"{self.level}/{self.kind}"
        return f"{where}: {' '.join(f'{dim}={factor}' for dim, factor in self.rows)}"


def parse_plan(text: str) -> tuple[PlanEntry, ...]:
    """
    Return the entries of a plan string.

    Raises PassFailedException that quotes the part that is no entry.
    """
    parts = [part for part in text.split(";") if part.strip()]
    return tuple(_parse_entry(part) for part in parts)


def _parse_entry(text: str) -> PlanEntry:
    if (entry := _ENTRY.match(text)) is None:
        raise PassFailedException(
            f"plan entry '{text.strip()}' is not of the form LEVEL/KIND: DIM=FACTOR .."
        )
    rows: list[tuple[str, int]] = []
    for word in entry["rows"].split():
        if (row := _ROW.match(word)) is None:
            raise PassFailedException(
                f"plan row '{word}' of '{text.strip()}' is not of the form DIM=FACTOR "
                "with a positive factor"
            )
        rows.append((row["dim"], int(row["factor"])))
    dims = [dim for dim, _ in rows]
    if len(set(dims)) != len(dims):
        raise PassFailedException(f"plan entry '{text.strip()}' names a row twice")
    return PlanEntry(entry["level"], entry["kind"], tuple(rows))


def check_plan(
    entries: Sequence[PlanEntry], levels: Sequence[str], dims: Sequence[str]
) -> None:
    """
    Raise PassFailedException if a plan names a level or a dimension that is not there.

    `dims` are those of the program; a pass may give one of them a number, as in N1.
    """
    for entry in entries:
        if entry.level not in levels:
            raise PassFailedException(
                f"tile: plan entry '{entry}' is for the unknown level {entry.level}; "
                f"there are {', '.join(levels)}"
            )
        for dim, _ in entry.rows:
            if dim not in dims and dim.rstrip("0123456789") not in dims:
                raise PassFailedException(
                    f"tile: plan entry '{entry}' names the unknown dimension {dim}; "
                    f"there are {', '.join(dims)}"
                )


def format_plan(entries: Sequence[PlanEntry]) -> str:
    """Return the plan string of `entries`."""
    return "; ".join(str(entry) for entry in entries)


def plan_targets(func: FuncOp) -> Iterator[NodeOp]:
    """Yield the nodes a plan is for: temporal ones and grids, outermost first."""
    for op in func.walk():
        if isinstance(op, TemporalOp) or (
            isinstance(op, SpatialOp) and op.mesh_name is None
        ):
            yield op


def node_level(node: NodeOp) -> str:
    """Return the name a plan knows the level of `node` by."""
    if isinstance(node, SpatialOp):
        return GRID
    if node.initial_carries() and _on_mesh(node):
        return FOLD
    return _shared_level(node) or level_of(node.outs[0]) or ""


def _on_mesh(node: NodeOp) -> bool:
    """Return whether `node` holds nodes that are spread over a mesh."""
    inner = (op for op in node.body.walk() if isinstance(op, SpatialOp))
    return any(op.mesh_name is not None for op in inner)


def _shared_level(node: NodeOp) -> str | None:
    """Return the level that nodes over a mesh in `node` fetch from, if any do."""
    for op in node.body.block.ops:
        if isinstance(op, SpatialOp) and op.mesh_name is not None:
            for transfer in transfers(op):
                return transfer.outer_level
    return None


def node_kinds(node: NodeOp) -> frozenset[str]:
    """Return the kinds a plan knows `node` by: names of its ops, and what they do."""
    kinds: set[str] = set()
    for op in node.body.walk():
        kinds.add(op.name.partition(".")[2])
        if isinstance(op, MapOp | ReduceOp):
            kinds.add(str(op.kind.data))
    return frozenset(kinds)


def nest_number(node: NodeOp) -> str:
    """Return the number of the outermost node around `node`, from 1, as text."""
    outermost = node.outermost
    block = outermost.parent
    nests = [] if block is None else [op for op in block.ops if isinstance(op, NodeOp)]
    return str(1 + nests.index(outermost))


def entry_for(node: NodeOp, entries: Sequence[PlanEntry]) -> PlanEntry | None:
    """Return the entry that gives rows to `node`, None if no entry does."""
    level, kinds = node_level(node), node_kinds(node)
    nest = nest_number(node)
    kinds |= {nest, *(f"{nest}/{kind}" for kind in kinds)}
    general = [e for e in entries if e.level == level and e.kind is None]
    special = [e for e in entries if e.level == level and e.kind in kinds]
    return (general + special)[-1] if general or special else None


def cuttable(node: NodeOp) -> tuple[str, ...]:
    """
    Return the dimensions that rows of `node` may name.

    In a kernel these are the ones that `fuse` chose, as another loop is another kernel;
    the loop of a fold has its one dimension.
    """
    carries = node.initial_carries()
    if node.in_kernel or (carries and _on_mesh(node)):
        return tuple(node.factors)
    return tuple(merged_extents((*node.ins, *carries), node.name))
