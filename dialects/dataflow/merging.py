"""Which programs arrive at counters, and which node the last of them runs."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from comet.dialects.compound.rename import RenameOp
from comet.dialects.compound.views import View
from comet.dialects.dataflow.arrival import ArriveOp
from comet.dialects.dataflow.program import KernelOp
from comet.dialects.schedule import SpatialOp


def arrivals_in(kernel: KernelOp) -> tuple[ArriveOp, ...]:
    """Return the arrivals of the programs of a kernel, in order."""
    return tuple(op for op in kernel.body.block.ops if isinstance(op, ArriveOp))


def arriving_node(arrive: ArriveOp) -> SpatialOp | None:
    """Return the node whose programs arrive, None if the operands are not of one."""
    found = {value.owner for value in arrive.partials}
    node = next(iter(found)) if len(found) == 1 else None
    return node if isinstance(node, SpatialOp) and node.is_grid else None


def merging_node(arrive: ArriveOp) -> SpatialOp | None:
    """Return the node that the last program to arrive runs, None if not one does."""
    found = {op for value in arrive.complete for _, op in readers(value)}
    node = next(iter(found)) if len(found) == 1 else None
    return node if node is not None and node.is_grid else None


def readers(value: SSAValue) -> Iterator[tuple[SSAValue, SpatialOp]]:
    """Yield the views of a value that nodes read, and these nodes."""
    for use in value.uses:
        if isinstance(use.operation, SpatialOp):
            yield value, use.operation
        elif isinstance(use.operation, View):
            yield from readers(use.operation.results[0])


def is_renamed(view: SSAValue, value: SSAValue) -> bool:
    """Return whether `view` is `value`, at most with other dimension names."""
    while view is not value:
        op = view.owner
        if not isinstance(op, RenameOp) or op.reshapes:
            return False
        view = op.input
    return True


def launched_nodes(kernel: KernelOp) -> tuple[SpatialOp, ...]:
    """Return the nodes whose programs the launch starts, and not an arrival."""
    return tuple(node for node in kernel.nodes if arrival_of(node) is None)


def arrival_of(node: SpatialOp) -> ArriveOp | None:
    """Return the arrival whose last program runs a node, None if all programs do."""
    kernel = node.parent_op()
    found = arrivals_in(kernel) if isinstance(kernel, KernelOp) else ()
    return next((op for op in found if merging_node(op) is node), None)
