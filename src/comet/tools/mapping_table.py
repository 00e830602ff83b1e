"""The mapping of a module as a table of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from comet.dialects.comet import CollectiveOp, OperationOp, TileOp
from comet.dialects.cost import estimate_of
from comet.text_table import aligned

HEADER: tuple[str, ...] = ("node", "where", "factors", "moves or computes", "cycles")


@dataclass(frozen=True)
class MappingRow:
    """One node of a mapping tree."""

    depth: int
    cells: tuple[str, ...]
    """The text of each column of `HEADER`."""


def mapping_rows(
    node: TileOp | OperationOp | CollectiveOp, depth: int = 0
) -> Iterator[MappingRow]:
    """Yield a row for a node and, after it, for all its descendants."""
    figures = estimate_of(node)
    cycles = "" if figures is None else f"{figures.latency:,.0f}"
    yield MappingRow(depth, (*_description(node), cycles))
    for child in node.children if isinstance(node, TileOp) else ():
        yield from mapping_rows(child, depth + 1)


def _description(node: TileOp | OperationOp | CollectiveOp) -> tuple[str, ...]:
    """Return the cells of a node: kind, levels, factors, and tensors or operation."""
    match node:
        case TileOp():
            tensors = dict.fromkeys(entry.tensor for entry in node.entries)
            return node.kind.data, _levels(node), _factors(node), " ".join(tensors)
        case OperationOp():
            primitive = " ".join(f"{dim}={n}" for dim, n in node.primitive.data)
            return node.kind.data, "", primitive, node.operation.data
        case CollectiveOp():
            tensors = dict.fromkeys((node.in_tensor.data, node.out_tensor.data))
            kind = "" if node.reduction_op is None else f" ({node.reduction_op.data})"
            return node.kind.data, node.target.data, "", " -> ".join(tensors) + kind


def _levels(tile: TileOp) -> str:
    targets = dict.fromkeys(entry.target for entry in tile.entries)
    children = dict.fromkeys(entry.child for entry in tile.entries)
    return f"{' '.join(targets)} > {' '.join(children)}"


def _factors(tile: TileOp) -> str:
    """List the factors above 1, outermost loop first."""
    loops = reversed(tile.permutation.data)
    factors = {dim: max(entry.factor(dim) for entry in tile.entries) for dim in loops}
    return " ".join(f"{dim}={n}" for dim, n in factors.items() if n > 1) or "-"


def format_table(rows: Sequence[MappingRow]) -> str:
    """Format rows below the header; the first column is indented like the tree."""
    texts: list[tuple[str, ...]] = [HEADER]
    texts += [("  " * row.depth + row.cells[0], *row.cells[1:]) for row in rows]
    rule = tuple("-" * max(map(len, column)) for column in zip(*texts, strict=True))
    texts.insert(1, rule)
    return "\n".join(aligned(texts, left=range(len(HEADER) - 1)))
