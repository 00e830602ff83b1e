"""A set of COMET files with the look-ups that the rules share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from comet_hardware import Level
from xdsl.ir import Operation

from comet.dialects.comet import (
    CollectiveOp,
    DeclareOp,
    MappingOp,
    OperationOp,
    ProblemOp,
    TileOp,
)
from comet.dialects.comet.attributes import MovedTensor


@dataclass(frozen=True)
class Files:
    """A file set, with the look-ups that the rules share."""

    levels: Mapping[str, Level]
    problem: ProblemOp
    mapping: MappingOp

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The extent of every dimension."""
        return dict(self.problem.instance.data)

    @cached_property
    def operations(self) -> dict[str, DeclareOp]:
        """The operations of the problem by name."""
        return {op.operation.data: op for op in self.problem.declarations}

    @cached_property
    def tiles(self) -> list[TileOp]:
        """All data-movement nodes, in document order."""
        return [op for op in self.mapping.walk() if isinstance(op, TileOp)]

    @cached_property
    def leaves(self) -> list[OperationOp]:
        """All operation nodes, in document order."""
        return [op for op in self.mapping.walk() if isinstance(op, OperationOp)]

    @cached_property
    def collectives(self) -> list[CollectiveOp]:
        """All collectives, in document order."""
        return [op for op in self.mapping.walk() if isinstance(op, CollectiveOp)]

    def relevant(self, operation: str, tensor: str) -> set[str]:
        """Return the dimensions that index `tensor` in `operation`."""
        for access in self.operations[operation].accesses:
            if access.tensor == tensor:
                return {dim for axis in access.projection for dim in axis}
        return set()

    def writes(self, entry: MovedTensor) -> bool:
        """Whether the entry moves towards DRAM."""
        op = self.operations.get(entry.tag)
        return op is not None and op.out.data == entry.tensor


def place(tile: TileOp) -> str:
    """Name a data-movement node for a message."""
    targets = dict.fromkeys(entry.target for entry in tile.entries)
    tags = dict.fromkeys(entry.tag for entry in tile.entries)
    return f"{tile.kind.data} node at {'/'.join(targets)} for {', '.join(tags)}"


def child_tiles(tile: TileOp) -> list[TileOp]:
    """Return the data-movement nodes directly below a node."""
    return [child for child in tile.children if isinstance(child, TileOp)]


def parent_tile(op: Operation) -> TileOp | None:
    """Return the data-movement node directly above a node."""
    parent = op.parent_op()
    return parent if isinstance(parent, TileOp) else None


def leaf_of(tile: TileOp) -> OperationOp | None:
    """Return the operation that a node holds directly, if any."""
    for child in tile.children:
        if isinstance(child, OperationOp):
            return child
    return None


def leaves_below(tile: TileOp) -> list[str]:
    """Return the names of the operations below a node."""
    return [op.operation.data for op in tile.walk() if isinstance(op, OperationOp)]
