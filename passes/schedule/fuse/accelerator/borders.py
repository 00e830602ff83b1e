"""The collectives that the border of a spatial node replaces."""

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
from comet.passes.schedule.fuse.instance_ops import InstanceOps


def dissolved_collectives(
    instance: InstanceOps, chain: MemoryChain
) -> dict[SSAValue, SSAValue]:
    """
    Return the results of the collectives that node borders replace, with operands.

    These are collectives over cores between the core buffers and the shared buffer: an
    all-reduce becomes the combiner of the spatial node, an all-gather its concatenation
    of tiles, a scatter its slicing.
    """
    return {
        op.result: op.input
        for op in instance.ops
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
    Return whether `value` decides which dimensions the mesh axes of a nest shard.

    Constants do not, nor shards of a reduce-scatter, which an all-gather concatenates
    again, nor the result of a gather that is only read under another name.
    """
    users = [use.operation for use in value.uses]
    renamed = _is_gather(value.owner) and all(isinstance(u, RenameOp) for u in users)
    return not renamed and not isinstance(value.owner, ReduceScatterOp | FillOp)


def _is_gather(op: object) -> bool:
    return isinstance(op, AllGatherOp | GatherOp)
