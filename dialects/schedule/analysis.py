"""
The forward analysis of a tile tree: which combiner each result of each node needs.

Every loop of a node is an axis along which a value is replicated, sharded or partial,
just as along the mesh axes of an SPMD region; the same transfer functions apply. At the
border of a node its own axes end: a partial value needs the combiner of its kind, a
replicated one is the same in all tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.ir import BlockArgument, SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective.analysis import op_states, transfer
from comet.dialects.collective.spmd import SpmdOp, sharding_of, state_of_sharding
from comet.dialects.collective.state import (
    FOLD,
    REPLICATED,
    State,
    States,
    without_axes,
)
from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.copy import CopyOp
from comet.dialects.schedule.node import NodeOp, combine_attr, nodes_around

Visitor = Callable[[NodeOp, States, tuple[Combiner, ...]], None]
"""
Called for each node, innermost first, with the states of the values around it and the
combiners that its results need.
"""


@transfer.register
def _(op: CopyOp, states: States) -> State:
    return states[op.source]


def verify_combiners(root: NodeOp) -> None:
    """
    Check the combiners of `root` and of every node below it.

    Raises VerifyException if a node has another combiner than a result needs.
    """

    def check(op: NodeOp, _states: States, needed: tuple[Combiner, ...]) -> None:
        for found, combiner in zip(op.combiners, needed, strict=True):
            if found is combiner or (combiner, found) == (Combiner.SAME, Combiner.ROOT):
                continue
            raise VerifyException(
                f"'{op.name}' op combines by {found} a result that needs {combiner}"
            )

    _result_states(root, _operand_states(root), 0, check)


def assign_combiners(root: NodeOp) -> None:
    """
    Set the `combine` property of `root` and of every node below it.

    Raises VerifyException if a body cannot be computed tile by tile along a loop.
    """

    def assign(op: NodeOp, _states: States, needed: tuple[Combiner, ...]) -> None:
        if (attribute := combine_attr(needed)) is not None:
            op.properties["combine"] = attribute
        else:
            op.properties.pop("combine", None)

    _result_states(root, _operand_states(root), 0, assign)


def _operand_states(root: NodeOp) -> States:
    """
    Return the states of the operands of `root`.

    In a kernel with groups of programs, which may exchange with other ranks, they have
    the shardings of the SPMD region. Elsewhere collectives are outside of nodes, so the
    mesh axes of ranks do not matter.
    """
    inside = (op for op in root.walk() if isinstance(op, NodeOp) and op is not root)
    if any(op.on_mesh for op in inside):
        return {value: _argument_state(value) for value in root.operands}
    return dict.fromkeys(root.operands, REPLICATED)


def _argument_state(value: SSAValue) -> State:
    """Return the state of an argument of an SPMD region, or of the positions in it."""
    while isinstance(value, BlockArgument):
        above = value.owner.parent_op()
        if isinstance(above, SpmdOp):
            return state_of_sharding(sharding_of(above.in_shardings.data[value.index]))
        if above is None or value.index >= len(above.operands):
            break
        value = above.operands[value.index]
    if isinstance(value.owner, IndexOp):
        return transfer(value.owner, {})
    return REPLICATED


@op_states.register
def node_states(root: NodeOp, states: States) -> States:
    """Return the states of the results of a node, given those of its operands."""
    outs = _result_states(root, states, 0, lambda _op, _states, _needed: None)
    return dict(zip(root.outs, outs, strict=True))


def states_around(root: NodeOp) -> Mapping[NodeOp, States]:
    """Return the states of the values around `root` and each node below it."""
    found: dict[NodeOp, States] = {}

    def note(op: NodeOp, states: States, _needed: tuple[Combiner, ...]) -> None:
        found[op] = states

    _result_states(root, _operand_states(root), 0, note)
    return found


def needed_combiners(node: NodeOp, states: States) -> tuple[Combiner, ...]:
    """
    Return the combiners that the results of a node need, given the states around it.

    Raises VerifyException if its body cannot be computed tile by tile along a loop.
    """
    found: dict[NodeOp, tuple[Combiner, ...]] = {}

    def note(op: NodeOp, _states: States, needed: tuple[Combiner, ...]) -> None:
        found[op] = needed

    _result_states(node, states, len(tuple(nodes_around(node))), note)
    return found[node]


def _result_states(
    op: NodeOp, states: States, depth: int, visit: Visitor
) -> tuple[State, ...]:
    """Return the states of the results of `op`, given those of its operands."""
    repeats = bool(op.init_args())
    axes = {} if repeats else _axes(op, depth)
    folded = _folded_axes(op, states) if repeats else ()
    merged = _merged_axes(op, states) if repeats else ()
    local: States = {}
    for outer, argument in op.sliced:
        local[argument] = _entered(
            without_axes(states[outer], (*folded, *merged)), argument, axes
        )
    for argument in op.region_iter_args if repeats else ():
        if local[argument].uniform:
            like = _like_operands(op, argument, states)
            local[argument] = without_axes(like, folded)
    for inner in list(op.body.block.ops)[:-1]:
        if isinstance(inner, NodeOp):
            results = _result_states(inner, local, depth + 1, visit)
            local.update(zip(inner.results, results, strict=True))
        else:
            local |= op_states(inner, local)
    yielded = [local[value] for value in op.yielded]
    needed = op.combiners if repeats else tuple(_combiners(op, yielded, axes))
    visit(op, states, needed)
    outside = (
        _outside_state(op, index, state, axes, folded, states)
        for index, state in enumerate(yielded)
    )
    pending = dict.fromkeys(merged, FOLD)
    return tuple(
        replace(state, partial={**pending, **state.partial}) for state in outside
    )


def _axes(op: NodeOp, depth: int) -> dict[str, str]:
    """Return the dimension of each loop, by its mesh axis or a generated axis name."""
    return {
        loop.axis or f"loop {loop.dim} ({depth})": loop.dim for loop in op.splitting
    }


def _entered(state: State, tile: SSAValue, axes: Mapping[str, str]) -> State:
    names = names_of(tile) if axes else ()
    split = {axis: dim for axis, dim in axes.items() if dim in names}
    return replace(state, sharded={**state.sharded, **split}) if split else state


def _like_operands(op: NodeOp, iter_arg: SSAValue, states: States) -> State:
    """
    Return the state of an iter_arg that starts as a constant: sharded like operands.

    A shard of a constant is that constant, and the later iter_args are shards.
    """
    splits = [item for value in op.ins for item in states[value].sharded.items()]
    names = names_of(iter_arg)
    return State({axis: dim for axis, dim in splits if dim in names}, {})


def _folded_axes(op: NodeOp, states: States) -> tuple[str, ...]:
    """Return the outer axes that shard a dimension over which `op` folds."""
    return tuple(
        axis
        for value in op.ins
        for axis, dim in states[value].sharded.items()
        if dim in op.factors
    )


def _merged_axes(op: NodeOp, states: States) -> tuple[str, ...]:
    """Return the outer axes along which operands of `op` are partials of a fold."""
    return tuple(
        axis
        for value in op.ins
        for axis, kind in states[value].partial.items()
        if kind == FOLD
    )


def _outside_state(
    op: NodeOp,
    index: int,
    state: State,
    axes: Mapping[str, str],
    folded: Sequence[str],
    states: States,
) -> State:
    """Return the state of a result outside its node, without the node's own axes."""
    outside = without_axes(state, tuple(axes))
    if not folded:
        return outside
    combiner = op.combiners[index]
    if combiner is Combiner.FOLD:
        return replace(
            outside, partial={**outside.partial, **dict.fromkeys(folded, FOLD)}
        )
    operand_axes = {
        axis: dim for v in op.ins for axis, dim in states[v].sharded.items()
    }
    names = names_of(op.outs[index])
    sharded = {
        axis: operand_axes[axis] for axis in folded if operand_axes[axis] in names
    }
    summed = folded if combiner in (Combiner.ADD, Combiner.MAX) else ()
    partial = {axis: str(combiner) for axis in summed if axis not in sharded}
    return replace(
        outside,
        sharded={**outside.sharded, **sharded},
        partial={**outside.partial, **partial},
    )


def _combiners(
    op: NodeOp, yielded: Sequence[State], axes: Mapping[str, str]
) -> list[Combiner]:
    if not axes:
        return [Combiner.NONE for _ in yielded]
    return [
        _combiner(op, value, state, axes)
        for value, state in zip(op.outs, yielded, strict=True)
    ]


def _combiner(
    op: NodeOp, value: SSAValue, state: State, axes: Mapping[str, str]
) -> Combiner:
    lost = [axis for axis, dim in axes.items() if dim not in names_of(value)]
    rooted = _is_rooted(op, value, state, axes, lost)
    if not lost:
        return Combiner.NONE
    for axis in lost:
        if axis in state.sharded:
            raise VerifyException(
                f"'{op.name}' op result {value.type} has only a shard of "
                f"{state.sharded[axis]} in each tile of {axes[axis]}, which it lacks"
            )
    kinds = {state.partial.get(axis, str(Combiner.SAME)) for axis in lost}
    if rooted and kinds == {str(Combiner.SAME)}:
        return Combiner.ROOT
    if len(kinds) > 1:
        raise VerifyException(
            f"'{op.name}' op result {value.type} needs two combiners, "
            f"{' and '.join(sorted(kinds))}; split the node"
        )
    return Combiner(kinds.pop())


def _is_rooted(
    op: NodeOp,
    value: SSAValue,
    state: State,
    axes: Mapping[str, str],
    lost: Sequence[str],
) -> bool:
    """Return whether only instance 0 has a result; raises if it is another one."""
    groups = {group: n for group, n in state.rooted.items() if set(group) & axes.keys()}
    for group, root in groups.items():
        if root != 0 or not set(group) <= set(lost):
            raise VerifyException(
                f"'{op.name}' op result {value.type} is held by instance {root} of "
                f"{', '.join(group)} only; a collective.broadcast is missing"
            )
    return bool(groups)
