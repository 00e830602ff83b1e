"""The bodies of a tile tree, each with the loops around it and the tiles it loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.repeated_loads import repeated_loads
from comet.dialects.schedule import TemporalOp
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

    def ops(self) -> Iterator[tuple[Operation, tuple[str, ...]]]:
        """Yield the ops that are no nodes, in their order, with the loops around."""
        for op in self.node.body.block.ops:
            if (body := self.inner.get(op)) is not None:
                yield from body.ops()
            else:
                yield op, self.loops


def read_body(
    node: NodeOp, shared_out: frozenset[str], around: tuple[str, ...] = ()
) -> Body:
    """
    Return the body of a node inside the loops `around`.

    Programs of a group have tiles along the dimensions `shared_out`: a loop over these
    counts as programs.
    """
    in_program = shared_out.isdisjoint(node.factors)
    loop = node if isinstance(node, TemporalOp) and in_program else None
    loops = around if loop is None else (*around, *loop.factors)
    return Body(
        node,
        loop,
        loops,
        tuple(loads(node)),
        late_loads(node),
        repeated_loads(node),
        {
            op: read_body(op, shared_out, loops)
            for op in node.body.block.ops
            if isinstance(op, NodeOp)
        },
    )
