"""A graph as ops of mappings, and views of tensors in the root memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.blocks import captured_by, yielded_by
from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound import (
    ConcatOp,
    PadOp,
    RenameOp,
    SliceOp,
)
from comet.dialects.compound.copied import is_copied, readers_of
from comet.dialects.errors import OpError, called
from comet.passes.analysis.op_groups import defining_ops, extents_conflict
from comet.passes.analysis.padding import is_border
from comet.passes.analysis.stored_values import format_stored
from comet.passes.sharding.boundary import says_sharding

NAME = "outline-mappings"

ROOT_VIEWS = RenameOp | SliceOp | ConcatOp
"""The views of tensors in the root memory, between mappings."""


@dataclass(frozen=True)
class PlannedMapping:
    """One mapping: its ops, in order, and the values at its borders."""

    ops: tuple[Operation, ...]
    reads: tuple[SSAValue, ...]
    """The arguments, results of other mappings, and views of both that it reads."""
    writes: tuple[SSAValue, ...]
    """The results that other mappings read, perhaps through views, or the caller."""


Chain: TypeAlias = tuple[PlannedMapping, ...]
"""Mappings of one graph, each after those whose results it reads."""


@dataclass(frozen=True)
class Graph:
    """A function as ops that mappings compute, views, and constants."""

    func: FuncOp

    @cached_property
    def needed(self) -> tuple[Operation, ...]:
        """The ops that results of the function depend on, in order."""
        ops = tuple(self.func.body.block.ops)
        needed = defining_ops(yielded_by(self.func.body.block), set(ops))
        return tuple(op for op in ops if op in needed)

    @cached_property
    def views(self) -> tuple[Operation, ...]:
        """The views between mappings."""
        return tuple(op for op in self.needed if isinstance(op, ROOT_VIEWS))

    @cached_property
    def computing(self) -> tuple[Operation, ...]:
        """The ops that mappings compute."""
        return tuple(
            op
            for op in self.needed
            if not isinstance(op, ROOT_VIEWS) and not is_repeated(op)
        )

    @property
    def is_one_mapping(self) -> bool:
        """Whether one mapping may hold all: no views, one extent of each dimension."""
        inside = (op for op in self.needed if not is_border(op))
        return not any(isinstance(op, ROOT_VIEWS) for op in inside) and not any(
            extents_conflict(self.computing, (op,)) for op in self.computing
        )

    def mapping(self, ops: Iterable[Operation]) -> PlannedMapping:
        """Return the mapping that computes `ops`, with the constants they read."""
        computed = set(ops)
        repeated = {op for op in self.needed if is_repeated(op)}
        inside = computed.union(
            *(defining_ops(captured_by(op), repeated) for op in computed)
        )
        ordered = tuple(op for op in self.needed if op in inside)
        operands = dict.fromkeys(value for op in ordered for value in captured_by(op))
        reads = tuple(v for v in operands if v.owner not in inside)
        results = (result for op in ordered if op in computed for result in op.results)
        return PlannedMapping(
            ordered, reads, tuple(v for v in results if _leaves(v, computed))
        )

    def text(self, chain: Iterable[PlannedMapping]) -> str:
        """Return the option that makes these mappings."""
        return format_stored(self.computing, (planned.writes for planned in chain))


def is_repeated(op: Operation) -> bool:
    """Return whether each mapping that reads `op` has its own: a border, or a copy."""
    return is_copied(op) or (isinstance(op, PadOp) and is_border(op))


def _leaves(value: SSAValue, ops: set[Operation]) -> bool:
    """Return whether ops outside of `ops`, or the caller, read a value."""
    block = value.owner.parent_block()
    assert block is not None
    readers = (block.find_ancestor_op_in_block(op) for op in readers_of(value))
    return any(reader not in ops for reader in readers)


def check_graph(graph: Graph) -> None:
    """
    Raise PassFailedException for a function that no chain of mappings computes.

    That is one whose result no mapping writes, or which is for instances already.
    """
    for op in graph.func.body.block.ops:
        if isinstance(op, SpmdOp | CollectiveOp):
            raise OpError(
                op,
                f"{NAME}: '{op.name}' is of one mapping; outline mappings before "
                "distribute",
            )
    if says_sharding(graph.func):
        raise OpError(
            graph.func,
            f"{NAME}: @{graph.func.sym_name.data} is sharded, and its mappings are "
            "sharded one by one; leave the shardings out, and distribute in each "
            "module",
        )
    _check_views(graph)
    computed = set(graph.computing)
    for value in yielded_by(graph.func.body.block):
        if not defining_ops((value,), set(graph.needed)) & computed:
            raise OpError(
                graph.func,
                f"{NAME}: @{graph.func.sym_name.data} returns "
                f"{called(value)}, which no operation computes; return "
                "what is computed, and no more",
            )


def _check_views(graph: Graph) -> None:
    """Raise PassFailedException for a view of what no mapping stores."""
    for op in graph.views:
        for value in op.operands:
            source = value.owner
            if isinstance(source, Operation) and is_repeated(source):
                raise OpError(
                    op,
                    f"{NAME}: '{op.name}' shows {called(value)}, which "
                    f"is in no memory, as each op that reads a '{source.name}' does it "
                    "itself; show what it reads, or make it an argument of @"
                    f"{graph.func.sym_name.data}",
                )
