"""The input of `fuse`: the elementary ops of a function as one list, SPMD or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.spmd import SpmdOp, sharding_of, state_of_sharding
from comet.dialects.collective.state import REPLICATED, States
from comet.passes.analysis.levels import spmd_region
from comet.passes.analysis.reduction_loops import without_constants

Inputs: TypeAlias = Mapping[SSAValue, SSAValue]


@dataclass(frozen=True)
class Program:
    """The ops that every instance runs, and the states of their values."""

    func: FuncOp
    region: SpmdOp | None
    """The region of the ops; None if they are in the function itself."""
    ops: tuple[Operation, ...]
    inputs: Inputs
    """From local values to the function's arguments that they are shards of."""
    outputs: tuple[SSAValue, ...]
    """The local values of the function's results, in order."""

    @cached_property
    def states(self) -> States:
        """The state of each value outside of folds' steps."""
        states: States = dict.fromkeys(self.inputs, REPLICATED)
        if self.region is not None:
            shardings = map(sharding_of, self.region.in_shardings)
            found = map(state_of_sharding, shardings)
            states = dict(zip(self.inputs, found, strict=True))
        for op in self.ops:
            states |= result_states(op, states)
        return states


def read_program(func: FuncOp) -> Program:
    """
    Return the ops of `func`: those of its SPMD region if it has one.

    Raises PassFailedException if there are ops outside the region.
    """
    *body, returned = func.body.block.ops
    if not isinstance(returned, ReturnOp):
        raise PassFailedException(f"function @{func.sym_name.data} does not return")
    region = spmd_region(func)
    if region is None:
        inputs: Inputs = {argument: argument for argument in func.body.block.args}
        return Program(func, None, tuple(body), inputs, tuple(returned.operands))
    for op in without_constants(body):
        if op is not region:
            raise PassFailedException(
                f"fuse: @{func.sym_name.data} has {op.name} beside its {region.name}; "
                "insert-collectives puts all of them into one region"
            )
    *ops, yielded = region.body.block.ops
    inputs = dict(zip(region.body.block.args, region.ins, strict=True))
    local = dict[SSAValue, SSAValue](zip(region.outs, yielded.operands, strict=True))
    outputs = tuple(local.get(value, value) for value in returned.operands)
    return Program(func, region, tuple(ops), inputs, outputs)
