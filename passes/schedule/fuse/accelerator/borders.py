"""Where the border of a spatial node replaces a collective."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    GatherOp,
    ReduceScatterOp,
    ScatterOp,
)
from comet.dialects.compound import FillOp, RenameOp
from comet.passes.analysis.memory_chain import MemoryChain
from comet.passes.schedule.fuse.program import Program


def dissolved_collectives(
    program: Program, chain: MemoryChain
) -> dict[SSAValue, SSAValue]:
    """
    Return the collectives over cores into or out of the cores.

    The border of their spatial node replaces them: a reduction becomes its combiner, an
    all-gather concatenates tiles, a scatter slices them.
    """
    return {
        op.result: op.input
        for op in program.ops
        if isinstance(op, AllReduceOp | AllGatherOp | ScatterOp)
        and op.from_level != op.to_level
        and op.from_level is not None
        and op.to_level is not None
        and chain.shared in (op.from_level.data, op.to_level.data)
        and set(op.axis_names) <= set(chain.core_axes)
    }


def follows_gather(op: Operation) -> bool:
    """Return whether `op` only renames the result of a gather."""
    return isinstance(op, RenameOp) and not op.reshapes and _is_gather(op.input.owner)


def needs_axes(value: SSAValue) -> bool:
    """
    Return whether the mesh axes of a nest have to split `value` like other values.

    Not constants, nor shards of a reduce-scatter, which an all-gather concatenates
    again, nor the result of a gather that others use by another name.
    """
    users = [use.operation for use in value.uses]
    renamed = _is_gather(value.owner) and all(isinstance(u, RenameOp) for u in users)
    return not renamed and not isinstance(value.owner, ReduceScatterOp | FillOp)


def _is_gather(op: object) -> bool:
    return isinstance(op, AllGatherOp | GatherOp)
