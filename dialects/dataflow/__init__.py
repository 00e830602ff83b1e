"""
The dataflow dialect: kernels, their launch order, and their buffers.

A `dataflow.program` is a launch plan. It wraps schedule nodes in kernels, gives every
value between two kernels a buffer, and orders the launches; a program of one kernel is
the plan of one GPU kernel. On accelerators a `dataflow.mapping` runs one mapping of a
chain, from memory to memory.

To read in this order: `program` (kernels, buffers, barriers); `channel`, `transfer` and
`flags` (ranks), `arrival` and `shares` (programs); and what they mean: `analysis`,
`locality`, `rank_loops`, `loop_nests`, `signals`, `launch_axes`, `merging`,
`persistence`.
"""

from xdsl.ir import Dialect

from comet.dialects.chain import MappingOp
from comet.dialects.dataflow import analysis  # it registers what the ops mean
from comet.dialects.dataflow.arrival import ArriveOp, CountersOp, CountersType
from comet.dialects.dataflow.channel import (
    ChannelModeAttr,
    ChannelOp,
    ChannelType,
    ReceiveBufferOp,
    program_value,
)
from comet.dialects.dataflow.flags import (
    EpochOp,
    EpochType,
    FlagsOp,
    FlagsType,
    ScopeAttr,
    SemanticsAttr,
)
from comet.dialects.dataflow.program import (
    BarrierOp,
    BufferOp,
    KernelOp,
    ProgramOp,
    YieldOp,
)
from comet.dialects.dataflow.shares import SharesOp
from comet.dialects.dataflow.transfer import (
    PullOp,
    PushOp,
    ReadOp,
    ReadTileOp,
    SignalOp,
    StageOp,
    WaitOp,
)

__all__ = [
    "ArriveOp",
    "BarrierOp",
    "BufferOp",
    "ChannelOp",
    "ChannelType",
    "CountersOp",
    "CountersType",
    "Dataflow",
    "EpochOp",
    "EpochType",
    "FlagsOp",
    "FlagsType",
    "KernelOp",
    "MappingOp",
    "ProgramOp",
    "PullOp",
    "PushOp",
    "ReadOp",
    "ReadTileOp",
    "ReceiveBufferOp",
    "SharesOp",
    "SignalOp",
    "StageOp",
    "WaitOp",
    "YieldOp",
    "analysis",
    "program_value",
]

Dataflow = Dialect(
    "dataflow",
    [
        ArriveOp,
        BarrierOp,
        BufferOp,
        ChannelOp,
        CountersOp,
        EpochOp,
        FlagsOp,
        ReceiveBufferOp,
        KernelOp,
        MappingOp,
        ProgramOp,
        PullOp,
        PushOp,
        ReadOp,
        ReadTileOp,
        SharesOp,
        SignalOp,
        StageOp,
        WaitOp,
        YieldOp,
    ],
    [
        ChannelModeAttr,
        ChannelType,
        CountersType,
        EpochType,
        FlagsType,
        ScopeAttr,
        SemanticsAttr,
    ],
)
