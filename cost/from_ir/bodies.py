"""The bodies of a tile tree, each with the loops around it and the tiles it loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.repeated_loads import repeated_loads
from comet.dialects.dataflow.loop_nests import coalescible_nests
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import Border, loads


@dataclass(frozen=True, eq=False)
class Body:
    """The body of a node of a tile tree, and the bodies in it."""

    node: NodeOp
    loop: TemporalOp | None
    """The node if it is a loop of one program: not over tiles of programs."""
    loops: tuple[str, ...]
    """The loops of the program around the ops of the body, the innermost last."""
    coalesced: int
    """How many of the innermost of `loops` are one loop, if that is several."""
    loads: tuple[Border, ...]
    late: Mapping[SSAValue, Operation]
    """The tiles that are loaded after an inner loop, with their first use."""
    repeated: Mapping[SSAValue, tuple[str, ...]]
    """The tiles that a loop before this one loads, too, with the loops of both."""
    inner: Mapping[Operation, Body]
    """The bodies of the nodes in it, in their order."""

    def walk(self) -> Iterator[Body]:
        """Yield this body and all that are in it, outer ones first."""
        yield self
        for body in self.inner.values():
            yield from body.walk()

    def ops(self) -> Iterator[tuple[Operation, Body]]:
        """Yield the ops that are no nodes, in their order, each with its body."""
        for op in self.node.body.block.ops:
            if (body := self.inner.get(op)) is not None:
                yield from body.ops()
            else:
                yield op, self


def read_bodies(grid: SpatialOp, shared_out: frozenset[str]) -> Body:
    """
    Return the body of a kernel's grid node.

    Programs of a group have tiles along the dimensions `shared_out`: a loop over these
    counts as programs.
    """
    return _read_body(grid, shared_out, coalesced_loops(grid), ())


def coalesced_loops(grid: SpatialOp) -> Mapping[Operation, int]:
    """
    Return how many loops around the body of a node are one loop of the kernel.

    They are, or `coalesce-loops` will make them one.
    """
    found: dict[Operation, int] = {}
    for op in grid.walk():
        if isinstance(op, TemporalOp) and op.coalesce is not None:
            found[op] = len(op.loops)
    for nest in coalescible_nests(grid):
        counts = accumulate(len(op.loops) for op in nest)
        found.update(zip(nest, counts, strict=True))
    return found


def _read_body(
    node: NodeOp,
    shared_out: frozenset[str],
    coalesced: Mapping[Operation, int],
    around: tuple[str, ...],
) -> Body:
    """Return the body of a node inside the loops `around`."""
    in_program = shared_out.isdisjoint(node.factors)
    loop = node if isinstance(node, TemporalOp) and in_program else None
    loops = around if loop is None else (*around, *loop.factors)
    return Body(
        node,
        loop,
        loops,
        coalesced.get(node, 0),
        tuple(loads(node)),
        late_loads(node),
        repeated_loads(node),
        {
            op: _read_body(op, shared_out, coalesced, loops)
            for op in node.body.block.ops
            if isinstance(op, NodeOp)
        },
    )
