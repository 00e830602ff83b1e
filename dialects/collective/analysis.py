"""
The forward analysis of an SPMD region: how each value relates to the global one.

`collective/state.py` has the properties of a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects import compound
from comet.dialects.collective import ops
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.state import FOLD, State, States
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.errors import about


def missing_op(kind: str) -> str:
    """Return the end of an error: the collective that completes a partial of `kind`."""
    if kind == FOLD:
        return "; an all_gather and a fold of its merge are missing"
    return f"; a collective.all_reduce {kind} is missing"


def states_after(op: Operation, states: States) -> States:
    """
    Return the states of the results of an op of any level, and of the values inside.

    Raises VerifyException if `op` cannot use a value in its state, or uses one from
    outside of the region.
    """
    with about(op):
        if any(value not in states for value in op.operands):
            raise VerifyException(
                f"'{op.name}' op uses a value from outside of its region; hand it in "
                "as an operand of the op around it"
            )
        return op_states(op, states)


@singledispatch
def op_states(op: Operation, states: States) -> States:
    """The same for an op with known operands; dialects with regions register it."""
    return result_states(op, states)


def result_states(op: Operation, states: States) -> States:
    """Return the state of each result of `op`, given those of its operands."""
    state = transfer(op, states)
    if len(op.results) < 2:
        return dict.fromkeys(op.results, state)
    return {result: _restricted(state, result) for result in op.results}


def _restricted(state: State, value: SSAValue) -> State:
    """Return `state` without the axes that split dimensions `value` does not have."""
    names = names_of(value)
    sharded = {axis: dim for axis, dim in state.sharded.items() if dim in names}
    return replace(state, sharded=sharded)


@singledispatch
def transfer(op: Operation, states: States) -> State:
    """Return the state that all results of `op` have, given those of its operands."""
    raise VerifyException(
        f"'{op.name}' op is not understood inside collective.spmd; only compound and "
        "collective ops are"
    )


def _reject_partials(
    op: Operation, states: States, allowed: Mapping[str, str] | None = None
) -> None:
    """Raise VerifyException for a partial operand, but of the `allowed` kinds."""
    for index, value in enumerate(op.operands):
        for axis, kind in states[value].partial.items():
            if allowed is not None and allowed.get(axis) == kind:
                continue
            raise VerifyException(
                f"'{op.name}' op operand {index} is partial({kind}) over axis "
                f"'{axis}'{missing_op(kind)}"
            )


def reject_rooted(op: Operation, state: State, axes: Iterable[str]) -> None:
    """Raise VerifyException if only a root along one of `axes` has the value."""
    for axis in axes:
        for group, root in state.rooted.items():
            if axis in group:
                raise VerifyException(
                    f"'{op.name}' op takes, over axis '{axis}', a value that only "
                    f"instance {root} holds; a collective.broadcast is missing"
                )


def _joined_roots(
    op: Operation, operands: Iterable[State]
) -> dict[tuple[str, ...], int]:
    roots: dict[tuple[str, ...], int] = {}
    for state in operands:
        for axes, root in state.rooted.items():
            if roots.setdefault(axes, root) != root:
                raise VerifyException(
                    f"'{op.name}' op instance {roots[axes]} holds one operand and "
                    f"instance {root} another; broadcast one of them"
                )
    return roots


def _joined(op: Operation, values: Iterable[SSAValue], states: States) -> State:
    """
    Join the shardings of operands that are used together.

    Raises VerifyException if two of them are sharded differently.
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
    state = State(
        joined,
        {},
        all(states[value].uniform for value in operands),
        _joined_roots(op, (states[value] for value in operands)),
    )
    for value in operands:
        _check_join(op, value, states[value], state)
    return state


def _check_join(op: Operation, value: SSAValue, state: State, joined: State) -> None:
    for axis, dim in joined.sharded.items():
        if state.splits(dim) not in ((), joined.splits(dim)):
            raise VerifyException(
                f"'{op.name}' op {dim} is split over {', '.join(joined.splits(dim))} "
                f"of one operand and over {', '.join(state.splits(dim))} of another"
            )
        if axis in state.sharded or state.uniform:
            continue
        if not _is_same_along(value, dim):
            raise VerifyException(
                f"'{op.name}' op has dimension {dim} sharded over axis '{axis}' in one "
                f"operand and replicated in another; an all_gather is missing"
            )


def _is_same_along(value: SSAValue, dim: str) -> bool:
    """Whether all positions along a dimension have the same number, if it has any."""
    made_of = [value]
    for each in made_of:
        if dim not in names_of(each) or isinstance(each.owner, compound.FillOp):
            continue
        if not isinstance(each.owner, compound.MapOp | compound.CastOp):
            return False
        made_of += [new for new in each.owner.operands if new not in made_of]
    return True


@transfer.register
def _(op: compound.ContractOp, states: States) -> State:
    _reject_partials(op, states)
    joined = _joined(op, op.operands, states)
    return _reduced(joined, op.contracted, "add")


@transfer.register
def _(op: compound.MapOp, states: States) -> State:
    """
    Partials of a fold may be rescaled, each instance its own, before they merge. A sum
    of sums that are all partial is partial itself, and a maximum of maxima; and so is a
    copy of a partial value.
    """
    partials = [states[value].partial.items() for value in op.operands]
    allowed = {
        axis: kind
        for partial in partials
        for axis, kind in partial
        if kind == FOLD
        or op.kind.data is compound.MapKind.COPY
        or (kind == str(op.kind.data) and all((axis, kind) in p for p in partials))
    }
    _reject_partials(op, states, allowed=allowed)
    joined = _joined(op, op.operands, states)
    for axis in joined.sharded.keys() & allowed.keys():
        raise VerifyException(
            f"'{op.name}' op axis '{axis}' splits {joined.sharded[axis]} of one "
            "operand, and the fold that made another; merge its partials first"
        )
    return replace(joined, partial=allowed)


def _fold_partials(values: Iterable[SSAValue], states: States) -> dict[str, str]:
    """Return the axes along which some values are partials of a fold."""
    return {
        axis: kind
        for value in values
        for axis, kind in states[value].partial.items()
        if kind == FOLD
    }


@transfer.register
def _(op: compound.ReduceOp, states: States) -> State:
    state, kind = states[op.input], str(op.kind.data)
    for axis, pending in state.partial.items():
        if pending != kind:
            raise VerifyException(
                f"'{op.name}' op {kind} of a value that is partial({pending}) over "
                f"axis '{axis}'{missing_op(pending)}"
            )
    return _reduced(state, op.reduced, kind)


def _reduced(state: State, dims: tuple[str, ...], kind: str) -> State:
    """Return `state` after reducing `dims`: axes that split them leave partials."""
    sharded = {axis: dim for axis, dim in state.sharded.items() if dim not in dims}
    pending = {axis: kind for axis in state.sharded if axis not in sharded}
    return replace(state, sharded=sharded, partial={**state.partial, **pending})


@transfer.register
def _(op: compound.CastOp, states: States) -> State:
    """A part of a sum is no integer where the sum is one."""
    if op.truncates:
        _reject_partials(op, states)
    return states[op.input]


@transfer.register
def _(op: compound.PadOp, states: States) -> State:
    return _resized(op, states)


@transfer.register
def _(op: compound.SliceOp, states: States) -> State:
    return _resized(op, states)


@transfer.register
def _(op: compound.ConcatOp, states: States) -> State:
    return _resized(op, states)


def _resized(
    op: compound.PadOp | compound.SliceOp | compound.ConcatOp, states: States
) -> State:
    """Return the state of `op`, which other extents do not change."""
    _reject_partials(op, states)
    state, after = _joined(op, op.operands, states), extents_of(op.result)
    for value in op.operands:
        for axis, dim in states[value].sharded.items():
            if extents_of(value)[dim] != after[dim]:
                raise VerifyException(
                    f"'{op.name}' op resizes {dim}, which is split over axis '{axis}'; "
                    "resize the whole value"
                )
    return replace(state, uniform=False)


@transfer.register
def _(op: compound.GatherOp, states: States) -> State:
    _reject_partials(op, states)
    axes = states[op.table].splits(op.along)
    if op.own is not None:
        return _from_own_rows(op, axes, states)
    if axes:
        raise VerifyException(
            f"'{op.name}' op gathers along {op.along}, which is split over axis "
            f"'{axes[0]}'; gather from the whole table"
        )
    return replace(_joined(op, op.operands, states), uniform=False)


def _from_own_rows(op: compound.GatherOp, axes: Sequence[str], states: States) -> State:
    """Return the state of rows that instances take of their own shards."""
    ids = states[op.ids].sharded
    for axis in axes:
        if axis not in ids:
            raise VerifyException(
                f"'{op.name}' op takes rows of shards over axis '{axis}', and ids are "
                f"{states[op.ids].describe(axis)}; give each instance ids of its own, "
                "along a dimension over the axis"
            )
    rest = {a: d for a, d in states[op.table].sharded.items() if a not in axes}
    return State({**rest, **ids}, {})


@transfer.register
def _(op: compound.ScatterAddOp, states: States) -> State:
    """Instances that have some of the rows have a term of each sum."""
    _reject_partials(op, states)
    joined = replace(_joined(op, op.operands, states), uniform=False)
    return _reduced(joined, names_of(op.ids), "add")


@transfer.register
def _(op: compound.RenameOp, states: States) -> State:
    state = states[op.input]
    for axis, dim in state.sharded.items():
        if dim in op.merged[1:]:
            raise VerifyException(
                f"'{op.name}' op merges {dim}, which is split over axis '{axis}'; "
                "merge the whole dimension"
            )
    renamed = {axis: op.renaming[dim] for axis, dim in state.sharded.items()}
    return replace(state, sharded=renamed)


@transfer.register
def _(op: compound.FillOp, states: States) -> State:
    return State({}, {}, uniform=True)


@transfer.register
def _(op: compound.IndexOp, states: States) -> State:
    """
    Every instance counts the whole dimension, or its shard over the named axes.
    """
    return State(dict.fromkeys(op.axis_names, op.dim), {})


@transfer.register
def _(op: compound.ExtentOp, states: States) -> State:
    """The local extent is a term of the global one; that of a constant is constant."""
    state = states[op.input]
    return State({}, dict.fromkeys(state.splits(op.dim.data), "add"), state.uniform)


@transfer.register
def _(op: compound.FoldOp, states: States) -> State:
    """A fold may merge the partials of a fold along one axis before those of others."""
    fold_partials = _fold_partials(op.ins, states)
    merged = all(
        fold_partials.items() <= states[value].partial.items() for value in op.ins
    )
    _reject_partials(op, states, allowed=fold_partials if merged else None)
    state = _reduced(_joined(op, op.operands, states), (op.dim.data,), FOLD)
    return replace(state, partial={**fold_partials, **state.partial}, uniform=False)


@transfer.register
def _(op: ops.AllReduceOp, states: States) -> State:
    return _finished(op, states[op.input], str(op.kind.data))


@transfer.register
def _(op: ops.RootReduceOp, states: States) -> State:
    state = _finished(op, states[op.input], str(op.kind.data))
    root = {op.axis_names: op.root.value.data}
    return replace(state, rooted={**state.rooted, **root})


@transfer.register
def _(op: ops.ReduceScatterOp, states: States) -> State:
    state = _finished(op, states[op.input], str(op.kind.data))
    return _scattered(op, state, op.dim.data)


def _finished(op: CollectiveOp, state: State, kind: str) -> State:
    """Return `state` after its partials over the op's axes were reduced by `kind`."""
    reject_rooted(op, state, op.axis_names)
    for axis in op.axis_names:
        if state.partial.get(axis) not in (kind, FOLD):
            raise VerifyException(
                f"'{op.name}' op reduces by {kind} over axis '{axis}' a value that is "
                f"{state.describe(axis)}"
            )
    pending = {a: k for a, k in state.partial.items() if a not in op.axis_names}
    return replace(state, partial=pending, uniform=False)


@transfer.register
def _(op: ops.AllGatherOp, states: States) -> State:
    return _gathered(op, states[op.input], op.dim.data)


@transfer.register
def _(op: ops.GatherOp, states: States) -> State:
    state = _gathered(op, states[op.input], op.dim.data)
    root = {op.axis_names: op.root.value.data}
    return replace(state, rooted={**state.rooted, **root})


def _gathered(op: CollectiveOp, state: State, dim: str) -> State:
    """
    Return `state` after concatenating along `dim`.

    Partials stacked along a new dimension are a whole value of that dimension.
    """
    reject_rooted(op, state, op.axis_names)
    if dim in names_of(op.input):
        _require_sharded(op, state, dim)
        return _without(state, op.axis_names)
    for axis in op.axis_names:
        if axis not in state.partial:
            raise VerifyException(
                f"'{op.name}' op stacks along the new dimension {dim}, over axis "
                f"'{axis}', a value that is {state.describe(axis)}, not partial"
            )
    pending = {a: k for a, k in state.partial.items() if a not in op.axis_names}
    return replace(_without(state, op.axis_names), partial=pending)


@transfer.register
def _(op: ops.ScatterOp, states: States) -> State:
    state = _from_root(op, states[op.input], op.root.value.data)
    return _scattered(op, state, op.dim.data)


@transfer.register
def _(op: ops.BroadcastOp, states: States) -> State:
    state = _from_root(op, states[op.input], op.root.value.data)
    _require_whole(op, state, "copies its operand")
    return replace(state, uniform=False)


def _from_root(op: CollectiveOp, state: State, root: int) -> State:
    """Return `state` after the instance `root` of each group has sent its value."""
    rooted = {a: r for a, r in state.rooted.items() if (a, r) != (op.axis_names, root)}
    state = replace(state, rooted=rooted)
    reject_rooted(op, state, op.axis_names)
    return state


def _scattered(op: CollectiveOp, state: State, dim: str) -> State:
    """Return `state` after the op's axes have split `dim`, as the minor ones."""
    _require_whole(op, state, f"splits {dim}")
    sharded = {**state.sharded, **dict.fromkeys(op.axis_names, dim)}
    return replace(state, sharded=sharded, uniform=False)


@transfer.register
def _(op: ops.AllToAllOp, states: States) -> State:
    state = _gathered(op, states[op.input], op.concat.data)
    return _scattered(op, state, op.split.data)


@transfer.register
def _(op: ops.SendOp, states: States) -> State:
    reject_rooted(op, states[op.input], op.axis_names)
    return states[op.input]


@transfer.register
def _(op: ops.RecvOp, states: States) -> State:
    return states[op.token]


def _require_sharded(op: CollectiveOp, state: State, dim: str) -> None:
    holders = state.splits(dim)
    for axis in op.axis_names:
        if axis not in holders:
            raise VerifyException(
                f"'{op.name}' op concatenates {dim} over axis '{axis}', along which "
                f"its operand is {state.describe(axis)}"
            )
    if holders[-len(op.axis_names) :] != op.axis_names:
        raise VerifyException(
            f"'{op.name}' op concatenates {dim}, split over {', '.join(holders)}, over "
            f"{', '.join(op.axis_names)}; only the last axes, in order, can be"
        )


def _require_whole(op: CollectiveOp, state: State, does: str) -> None:
    for axis in op.axis_names:
        if axis in state.sharded or axis in state.partial:
            raise VerifyException(
                f"'{op.name}' op {does} over axis '{axis}', along which it is "
                f"{state.describe(axis)}"
            )


def _without(state: State, axes: tuple[str, ...]) -> State:
    """Return `state` after the value became the same along `axes`."""
    sharded = {axis: dim for axis, dim in state.sharded.items() if axis not in axes}
    return replace(state, sharded=sharded, uniform=False)
