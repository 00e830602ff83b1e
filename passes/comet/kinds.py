"""The kinds of ops in COMET files, by the ops of our dialects."""

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
from comet.dialects.compound import MapKind, ReduceKind
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
"""How a collective of the files combines values."""

COLLECTIVES: dict[type[CollectiveOp], CollectiveKind] = {
    AllReduceOp: CollectiveKind.ALL_REDUCE,
    AllGatherOp: CollectiveKind.ALL_GATHER,
    BroadcastOp: CollectiveKind.BROADCAST,
    RootReduceOp: CollectiveKind.REDUCTION,
    GatherOp: CollectiveKind.GATHER,
    ScatterOp: CollectiveKind.SCATTER,
}
"""The type of each collective in the files."""
