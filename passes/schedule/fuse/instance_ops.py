"""The input of `fuse`: the elementary ops of a function, in an SPMD region or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.blocks import defined_in
from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.spmd import SpmdOp, sharding_of, state_of_sharding
from comet.dialects.collective.state import REPLICATED, States
from comet.dialects.compound import PadOp, SliceOp
from comet.dialects.compound.dims import bytes_of
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import spmd_region
from comet.passes.analysis.padding import is_border, unsliced
from comet.passes.analysis.reduction_loops import without_constants

Crossing: TypeAlias = Mapping[SSAValue, SSAValue]

MOST_BYTES = 2**53
"""The largest value that prices count exactly: they are floats of 64 bits."""


@dataclass(frozen=True)
class InstanceOps:
    """The ops that every instance runs, and the states of their values."""

    func: FuncOp
    region: SpmdOp | None
    """The region of the ops; None if they are in the function itself."""
    ops: tuple[Operation, ...]
    inputs: Crossing
    """From values of an instance to the arguments, perhaps padded, that they shard."""
    leaving: Crossing
    """From results of the region to the values of an instance that are their shards."""

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The values of an instance for the function's results, before slices."""
        values = map(unsliced, self.returned.operands)
        return tuple(self.leaving.get(value, value) for value in values)

    @property
    def returned(self) -> ReturnOp:
        """The terminator of the function."""
        returned = self.func.body.block.last_op
        assert isinstance(returned, ReturnOp)
        return returned

    @property
    def pads(self) -> tuple[Operation, ...]:
        """The pads of arguments."""
        return tuple(op for op in self._borders if isinstance(op, PadOp))

    @property
    def slices(self) -> tuple[Operation, ...]:
        """The slices of results."""
        return tuple(op for op in self._borders if isinstance(op, SliceOp))

    @property
    def _borders(self) -> Sequence[Operation]:
        return [op for op in self.func.body.block.ops if is_border(op)]

    @cached_property
    def states(self) -> States:
        """The state of each value, except those in the steps of folds."""
        states: States = dict.fromkeys(self.inputs, REPLICATED)
        if self.region is not None:
            shardings = map(sharding_of, self.region.in_shardings)
            found = map(state_of_sharding, shardings)
            states = dict(zip(self.inputs, found, strict=True))
        for op in self.ops:
            states |= result_states(op, states)
        return states


def read_instance_ops(func: FuncOp) -> InstanceOps:
    """
    Return the ops of `func`: those of its SPMD region if it has one.

    Raises PassFailedException if other ops are outside the region, and for values of
    more than MOST_BYTES.
    """
    _check_sizes(func)
    *body, returned = func.body.block.ops
    if not isinstance(returned, ReturnOp):
        raise OpError(func, f"function @{func.sym_name.data} does not return")
    region, inner = spmd_region(func), [op for op in body if not is_border(op)]
    if region is None:
        pads = (op.results[0] for op in body if isinstance(op, PadOp) and is_border(op))
        inputs: Crossing = {value: value for value in (*func.body.block.args, *pads)}
        return InstanceOps(func, None, tuple(inner), inputs, {})
    for op in without_constants(inner):
        if op is not region:
            raise OpError(
                op,
                f"fuse: @{func.sym_name.data} has {op.name} beside its {region.name}; "
                "insert-collectives puts all of them into one region",
            )
    *ops, yielded = region.body.block.ops
    inputs = dict(zip(region.body.block.args, region.ins, strict=True))
    local = dict[SSAValue, SSAValue](zip(region.outs, yielded.operands, strict=True))
    return InstanceOps(func, region, tuple(ops), inputs, local)


def _check_sizes(func: FuncOp) -> None:
    """Raise PassFailedException for a value of more than MOST_BYTES."""
    for value in defined_in(func.body.block):
        if isinstance(value.type, TensorType) and bytes_of(value) > MOST_BYTES:
            name = value.name_hint or "a value"
            raise OpError(
                func,
                f"fuse: %{name} of @{func.sym_name.data} has more than {MOST_BYTES} "
                "bytes, which no memory holds; make it smaller",
            )
