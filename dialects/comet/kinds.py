"""The kinds of operations and collectives in COMET files, by the ops of dialects."""

from __future__ import annotations

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    CollectiveOp,
    GatherOp,
    RootReduceOp,
    ScatterOp,
)
from comet.dialects.compound import ContractOp, MapKind, MapOp, ReduceKind, ReduceOp
from comet.kinds import CollectiveKind, OperationKind, ReductionKind

MAPS = {
    MapKind(str(kind)): kind
    for kind in (
        OperationKind.ADD,
        OperationKind.MULT,
        OperationKind.DIV,
        OperationKind.MAX,
        OperationKind.EXP,
        OperationKind.SQRT,
    )
}
"""The operation type of each elementwise function of the vector unit."""

REDUCES = {
    ReduceKind.ADD: OperationKind.ROWSUM,
    ReduceKind.MAX: OperationKind.ROWMAX,
}
"""The operation type of each reduction."""

REDUCTIONS = {
    ReduceKind.ADD: ReductionKind.ADD,
    ReduceKind.MAX: ReductionKind.MAX,
}
"""The kind of each reduction in a collective of the files."""

COLLECTIVES: dict[type[CollectiveOp], CollectiveKind] = {
    AllReduceOp: CollectiveKind.ALL_REDUCE,
    AllGatherOp: CollectiveKind.ALL_GATHER,
    BroadcastOp: CollectiveKind.BROADCAST,
    RootReduceOp: CollectiveKind.REDUCTION,
    GatherOp: CollectiveKind.GATHER,
    ScatterOp: CollectiveKind.SCATTER,
}
"""The type of each collective in the files."""


def operation_kind(op: ContractOp | MapOp | ReduceOp) -> OperationKind | None:
    """Return the operation type of an op, None if the COMET tool has none."""
    if isinstance(op, ContractOp):
        return OperationKind.GEMM
    if isinstance(op, ReduceOp):
        return REDUCES[op.kind.data]
    # The vector unit has no subtraction; the files have an addition instead.
    return MAPS.get(MapKind.ADD if op.kind.data is MapKind.SUB else op.kind.data)
