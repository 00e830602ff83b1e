"""
The forward analysis of an SPMD region: how each value relates to the global one.

Along each mesh axis a value is *replicated* (every instance holds the same),
*sharded* (each holds its share of one dimension), or *partial* (each holds a term of
a reduction that is still to be done). A constant tensor is *uniform*: it fits a
replicated as well as a sharded dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects import collective, compound
from comet.dialects.collective_mesh import MeshOp
from comet.dialects.collective_spmd import Sharding, SpmdOp, YieldOp
from comet.dialects.compound_dims import names_of

FOLD = "fold"
"""The reduction kind of the partials of a fold: only its own merge combines them."""


@dataclass(frozen=True)
class State:
    """What is known of one value along every mesh axis; absent axis = replicated."""

    sharded: Mapping[str, str]
    """The dimension that each axis splits."""
    partial: Mapping[str, str]
    """The reduction that is still to be done over each axis: add, max or fold."""
    uniform: bool = False

    def describe(self, axis: str) -> str:
        """Say how the value relates to the global one along `axis`."""
        if axis in self.partial:
            return f"partial({self.partial[axis]})"
        return (
            f"sharded({self.sharded[axis]})" if axis in self.sharded else "replicated"
        )


REPLICATED = State({}, {})
States = dict[SSAValue, State]


def state_of_sharding(sharding: Sharding) -> State:
    """Return the state of a value that comes in under `sharding`."""
    return State({axis: dim for dim, axes in sharding.items() for axis in axes}, {})


def verify_spmd(op: Operation, mesh: MeshOp) -> None:
    """
    Check that the body of the `spmd` op computes what it would on one device.

    Raises VerifyException for a map on a partial value, a wrong reduction kind or axis,
    operands that are sharded differently, or a yield that does not match.
    """
    assert isinstance(op, SpmdOp)
    states: States = {}
    boundary = op.boundary()
    for _, argument, sharding in boundary[: len(op.ins)]:
        states[argument] = state_of_sharding(sharding)
    for inner in op.body.block.ops:
        if isinstance(inner, YieldOp):
            break
        state = transfer(inner, states)
        for result in inner.results:
            states[result] = state
    for _, value, sharding in boundary[len(op.ins) :]:
        _verify_yield(op, mesh, states[value], sharding)


def _verify_yield(op: SpmdOp, mesh: MeshOp, state: State, sharding: Sharding) -> None:
    expected = state_of_sharding(sharding)
    for axis in mesh.axis_extents:
        if state.uniform and axis not in state.partial:
            continue
        if state.describe(axis) != expected.describe(axis):
            raise VerifyException(
                f"'{op.name}' op yields a value that is {state.describe(axis)} over "
                f"axis '{axis}' where its sharding says {expected.describe(axis)}"
                + (_forgotten(state.partial[axis]) if axis in state.partial else "")
            )


def _forgotten(kind: str) -> str:
    if kind == FOLD:
        return "; an all_gather and a fold of its merge are missing"
    return f"; a collective.all_reduce {kind} is missing"


@singledispatch
def transfer(op: Operation, states: States) -> State:
    """Return the state of the results of `op`, given those of its operands."""
    raise VerifyException(
        f"'{op.name}' op is not understood inside collective.spmd; only compound and "
        "collective ops are"
    )


def _reject_partials(op: Operation, states: States) -> None:
    for index, value in enumerate(op.operands):
        for axis, kind in states[value].partial.items():
            raise VerifyException(
                f"'{op.name}' op operand {index} is partial({kind}) over axis "
                f"'{axis}'{_forgotten(kind)}"
            )


def _joined(op: Operation, values: Iterable[SSAValue], states: States) -> State:
    """
    Join the shardings of operands that are used together.

    Raises VerifyException if two of them disagree on who holds what.
    """
    operands = list(values)
    joined: dict[str, str] = {}
    for value in operands:
        for axis, dim in states[value].sharded.items():
            if joined.setdefault(axis, dim) != dim:
                raise VerifyException(
                    f"'{op.name}' op axis '{axis}' splits {joined[axis]} of one "
                    f"operand and {dim} of another; reshard one of them"
                )
    for value in operands:
        _check_join(op, value, states[value], joined)
    return State(joined, {}, all(states[value].uniform for value in operands))


def _check_join(
    op: Operation, value: SSAValue, state: State, joined: Mapping[str, str]
) -> None:
    for axis, dim in joined.items():
        if dim in names_of(value) and axis not in state.sharded and not state.uniform:
            raise VerifyException(
                f"'{op.name}' op has dimension {dim} sharded over axis '{axis}' in one "
                f"operand and replicated in another; an all_gather is missing"
            )


@transfer.register
def _(op: compound.ContractOp, states: States) -> State:
    _reject_partials(op, states)
    joined = _joined(op, op.operands, states)
    return _reduced(joined, op.contracted, "add")


@transfer.register
def _(op: compound.MapOp, states: States) -> State:
    _reject_partials(op, states)
    return _joined(op, op.operands, states)


@transfer.register
def _(op: compound.ReduceOp, states: States) -> State:
    state, kind = states[op.input], str(op.kind.data)
    for axis, pending in state.partial.items():
        if pending != kind:
            raise VerifyException(
                f"'{op.name}' op {kind} of a value that is partial({pending}) over "
                f"axis '{axis}'{_forgotten(pending)}"
            )
    return _reduced(state, op.reduced, kind)


def _reduced(state: State, dims: tuple[str, ...], kind: str) -> State:
    """Return `state` after reducing `dims`: axes that split them leave partials."""
    kept = {axis: dim for axis, dim in state.sharded.items() if dim not in dims}
    pending = {axis: kind for axis in state.sharded if axis not in kept}
    return State(kept, {**state.partial, **pending}, state.uniform)


@transfer.register
def _(op: compound.CastOp, states: States) -> State:
    return states[op.input]


@transfer.register
def _(op: compound.RenameOp, states: States) -> State:
    state = states[op.input]
    renamed = {axis: op.renaming[dim] for axis, dim in state.sharded.items()}
    return State(renamed, state.partial, state.uniform)


@transfer.register
def _(op: compound.FillOp, states: States) -> State:
    return State({}, {}, uniform=True)


@transfer.register
def _(op: compound.ExtentOp, states: States) -> State:
    """The local extent is a term of the global one."""
    axes = states[op.input].sharded
    return State({}, {axis: "add" for axis, dim in axes.items() if dim == op.dim.data})


@transfer.register
def _(op: compound.FoldOp, states: States) -> State:
    _reject_partials(op, states)
    state = _reduced(_joined(op, op.operands, states), (op.dim.data,), FOLD)
    return State(state.sharded, state.partial)


@transfer.register
def _(op: collective.AllReduceOp, states: States) -> State:
    return _finished(op, states[op.input], str(op.kind.data))


@transfer.register
def _(op: collective.ReduceScatterOp, states: States) -> State:
    state = _finished(op, states[op.input], str(op.kind.data))
    _require_whole(op, state, op.dim.data)
    sharded = {**state.sharded, **dict.fromkeys(op.axis_names, op.dim.data)}
    return State(sharded, state.partial)


def _finished(op: collective.CollectiveOp, state: State, kind: str) -> State:
    """Return `state` after its partials over the op's axes were combined by `kind`."""
    for axis in op.axis_names:
        if state.partial.get(axis) != kind:
            raise VerifyException(
                f"'{op.name}' op reduces by {kind} over axis '{axis}' a value that is "
                f"{state.describe(axis)}"
            )
    pending = {a: k for a, k in state.partial.items() if a not in op.axis_names}
    return State(state.sharded, pending)


@transfer.register
def _(op: collective.AllGatherOp, states: States) -> State:
    state, dim = states[op.input], op.dim.data
    if dim not in names_of(op.input):
        return _stacked(op, state)
    _require_shares(op, state, dim)
    return _without(state, op.axis_names)


def _stacked(op: collective.CollectiveOp, state: State) -> State:
    """Partials stacked along a new dimension are a whole value of that dimension."""
    return State(
        {a: d for a, d in state.sharded.items() if a not in op.axis_names},
        {a: k for a, k in state.partial.items() if a not in op.axis_names},
    )


@transfer.register
def _(op: collective.GatherOp, states: States) -> State:
    state = states[op.input]
    if op.dim.data not in names_of(op.input):
        return _stacked(op, state)
    _require_shares(op, state, op.dim.data)
    return _without(state, op.axis_names)


@transfer.register
def _(op: collective.ScatterOp, states: States) -> State:
    state = states[op.input]
    _require_whole(op, state, op.dim.data)
    return State(
        {**state.sharded, **dict.fromkeys(op.axis_names, op.dim.data)}, state.partial
    )


@transfer.register
def _(op: collective.BroadcastOp, states: States) -> State:
    _reject_partials(op, states)
    return _without(states[op.input], op.axis_names)


@transfer.register
def _(op: collective.AllToAllOp, states: States) -> State:
    state = states[op.input]
    _require_shares(op, state, op.concat.data)
    moved = dict.fromkeys(op.axis_names, op.split.data)
    return State({**state.sharded, **moved}, state.partial)


@transfer.register
def _(op: collective.SendOp, states: States) -> State:
    return states[op.input]


@transfer.register
def _(op: collective.RecvOp, states: States) -> State:
    return states[op.token]


def _require_shares(op: collective.CollectiveOp, state: State, dim: str) -> None:
    holders = tuple(axis for axis, split in state.sharded.items() if split == dim)
    for axis in op.axis_names:
        if axis not in holders:
            raise VerifyException(
                f"'{op.name}' op lays {dim} side by side over axis '{axis}', along "
                f"which its operand is {state.describe(axis)}"
            )


def _require_whole(op: collective.CollectiveOp, state: State, dim: str) -> None:
    for axis in op.axis_names:
        if axis in state.sharded or axis in state.partial:
            raise VerifyException(
                f"'{op.name}' op splits {dim} over axis '{axis}', along which its "
                f"operand is {state.describe(axis)}"
            )


def _without(state: State, axes: tuple[str, ...]) -> State:
    kept = {axis: dim for axis, dim in state.sharded.items() if axis not in axes}
    return State(kept, state.partial)
