"""What launch plans compute: every kernel its body, one after another."""

from __future__ import annotations

import numpy as np

from comet.dialects.compound_dims import extents_of
from comet.dialects.dataflow import BarrierOp, BufferOp, KernelOp, ProgramOp
from comet.interpreter.machine import Machine, Values, evaluate
from comet.interpreter.tensor import Tensor


@evaluate.register
def _(op: ProgramOp, machine: Machine, args: Values) -> Values:
    return machine.run_block(op.body.block, args)


@evaluate.register
def _(op: KernelOp, machine: Machine, args: Values) -> Values:
    return machine.run_block(op.body.block, args[: len(op.ins)])


@evaluate.register
def _(op: BufferOp, machine: Machine, args: Values) -> Values:
    """What no kernel has written is NaN."""
    extents = extents_of(op.result)
    return (Tensor((), tuple(extents), np.full(tuple(extents.values()), np.nan)),)


@evaluate.register
def _(op: BarrierOp, machine: Machine, args: Values) -> Values:
    return ()
