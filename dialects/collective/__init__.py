"""
The collective dialect: a mesh, an SPMD region, and explicit collectives.

Collectives have value semantics and take the local values of an SPMD region (or of a
spatial node). A group is all instances that differ only in the named axes, the first
axis major.
"""

from xdsl.ir import Dialect

from comet.dialects.collective.base import AlgorithmAttr, CollectiveOp, TokenType
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.ops import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastOp,
    GatherOp,
    RecvOp,
    ReduceScatterOp,
    RootReduceOp,
    ScatterOp,
    SendOp,
)
from comet.dialects.collective.spmd import SpmdOp, YieldOp

__all__ = [
    "AllGatherOp",
    "AllReduceOp",
    "AllToAllOp",
    "BroadcastOp",
    "Collective",
    "CollectiveOp",
    "GatherOp",
    "MeshOp",
    "RecvOp",
    "ReduceScatterOp",
    "RootReduceOp",
    "ScatterOp",
    "SendOp",
    "SpmdOp",
    "YieldOp",
]

Collective = Dialect(
    "collective",
    [
        MeshOp,
        SpmdOp,
        YieldOp,
        AllReduceOp,
        AllGatherOp,
        ReduceScatterOp,
        BroadcastOp,
        RootReduceOp,
        GatherOp,
        ScatterOp,
        AllToAllOp,
        SendOp,
        RecvOp,
    ],
    [AlgorithmAttr, TokenType],
)
