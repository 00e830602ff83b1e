"""The elementary ops of a function as one list, SPMD or not, with their states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import (
    SpmdOp,
    YieldOp,
    sharding_of,
    state_of_sharding,
)
from comet.dialects.collective.state import REPLICATED, States
from comet.dialects.compound import FillOp

Inputs: TypeAlias = Mapping[SSAValue, SSAValue]


@dataclass(frozen=True)
class FlatProgram:
    """The ops that every instance runs, and how their values relate to global ones."""

    mesh: str
    axis_extents: Mapping[str, int]
    inputs: Inputs
    """Local values, and the function's arguments that they are shares of."""
    ops: tuple[Operation, ...]
    outputs: tuple[SSAValue, ...]
    """The local values that the function returns, in order."""
    states: States


def flatten(func: FuncOp, mesh: str) -> FlatProgram:
    """
    Return the ops of `func`; `mesh` is the one they run on without an SPMD region.

    Raises PassFailedException if ops stand beside the region, or for a result that no
    op computes.
    """
    body = list(func.body.block.ops)
    returned = body.pop()
    if not isinstance(returned, ReturnOp):
        raise PassFailedException(f"function @{func.sym_name.data} does not return")
    for value in returned.operands:
        _check_computed(func, value, isinstance(value, BlockArgument))
    spmd = next((op for op in body if isinstance(op, SpmdOp)), None)
    if spmd is None:
        inputs: Inputs = {argument: argument for argument in func.body.block.args}
        states: States = dict.fromkeys(inputs, REPLICATED)
        return _program(func, mesh, inputs, body, tuple(returned.operands), states)
    if len(body) > 1:
        raise PassFailedException(
            f"function @{func.sym_name.data} has ops beside its collective.spmd; "
            "insert-collectives puts all of them into one region"
        )
    inner = list(spmd.body.block.ops)
    yielded = inner.pop()
    assert isinstance(yielded, YieldOp)
    inputs = dict[SSAValue, SSAValue](zip(spmd.body.block.args, spmd.ins, strict=True))
    shardings = map(sharding_of, spmd.in_shardings)
    states = {
        argument: state_of_sharding(sharding)
        for argument, sharding in zip(inputs, shardings, strict=True)
    }
    local = dict[SSAValue, SSAValue](zip(spmd.outs, yielded.values, strict=True))
    outputs = tuple(local[value] for value in returned.operands)
    return _program(func, spmd.mesh.string_value(), inputs, inner, outputs, states)


def _check_computed(func: FuncOp, value: SSAValue, is_given: bool) -> None:
    """Raise PassFailedException for an argument or a constant that is a result."""
    if is_given:
        what = "argument" if isinstance(value, BlockArgument) else "constant"
        raise PassFailedException(
            f"fuse: @{func.sym_name.data} returns the {what} "
            f"%{value.name_hint or 'without a name'}, and accelerators have no "
            "operation that only stores one; return what is computed, and no more"
        )


def _program(
    func: FuncOp,
    mesh: str,
    inputs: Mapping[SSAValue, SSAValue],
    ops: list[Operation],
    outputs: tuple[SSAValue, ...],
    states: States,
) -> FlatProgram:
    for value in outputs:
        _check_computed(func, value, isinstance(value.owner, FillOp))
    for op in ops:
        states |= result_states(op, states)
    extents = lookup_mesh(func, mesh).axis_extents
    return FlatProgram(mesh, extents, inputs, tuple(ops), outputs, states)
