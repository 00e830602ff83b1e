"""Evaluates SPMD regions and collectives, on all instances in lockstep."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    GatherOp,
    RecvOp,
    ReduceScatterOp,
    RootReduceOp,
    ScatterOp,
    SendOp,
)
from comet.dialects.collective.mesh import MeshOp, lookup_mesh
from comet.dialects.collective.roots import Roots, roots_in
from comet.dialects.collective.spmd import Sharding, SpmdOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import SpatialOp
from comet.interpreter.instances import (
    agreed,
    instance,
    join,
    only_at_root,
    reduced_over,
    shifted,
    split,
)
from comet.interpreter.machine import Interpreter, Values, evaluate
from comet.interpreter.tensor import Tensor


@evaluate.register
def _(op: SpmdOp, machine: Interpreter, args: Values) -> Values:
    mesh = lookup_mesh(op, op.mesh)
    boundary = op.boundary()
    inputs, outputs = boundary[: len(args)], boundary[len(args) :]
    local = [
        _local(value, inner, sharding, mesh)
        for value, (_, inner, sharding) in zip(args, inputs, strict=True)
    ]
    results = machine.run_block(op.body.block, local)
    roots = roots_in(op.body.block)
    return tuple(
        _unsharded(_from_root(value, roots.get(inner, {}), mesh), outer, sharding, mesh)
        for value, (outer, inner, sharding) in zip(results, outputs, strict=True)
    )


def _from_root(value: Tensor, roots: Roots, mesh: MeshOp) -> Tensor:
    """Return the value that instance 0 of each group holds."""
    for group, root in roots.items():
        if root == 0:
            value = instance(
                value, {axis: mesh.axis_extents[axis] for axis in group}, 0
            )
    return value


def _local(value: Tensor, inner: SSAValue, sharding: Sharding, mesh: MeshOp) -> Tensor:
    """Return a value of outside the region as the shards of its instances."""
    for dim, axes in sharding.items():
        extents = {axis: mesh.axis_extents[axis] for axis in axes}
        value = split(value, dim, extents, extents_of(inner)[dim])
    return value


def _unsharded(
    value: Tensor, outer: SSAValue, sharding: Sharding, mesh: MeshOp
) -> Tensor:
    """Concatenate the shards; replicated values that differ become NaN."""
    for dim, axes in sharding.items():
        extents = {axis: mesh.axis_extents[axis] for axis in axes}
        value = join(value, dim, extents, extents_of(outer)[dim])
    return agreed(value, mesh.axis_extents)


def _group(op: CollectiveOp) -> dict[str, int]:
    """Return the extents of the op's mesh axes, the first one major."""
    extents = lookup_mesh(op, op.mesh).axis_extents | _idle(op)
    return {axis: extents[axis] for axis in op.axis_names}


def _idle(op: Operation) -> dict[str, int]:
    """Return extent 1 for each axis of which spatial nodes use one instance."""
    parent = op.parent_op()
    if parent is None:
        return {}
    loops = parent.loops if isinstance(parent, SpatialOp) else ()
    unit_axes = {
        loop.axis: 1 for loop in loops if loop.axis is not None and loop.factor == 1
    }
    return _idle(parent) | unit_axes


def _shard(op: Operation, dim: str) -> int:
    return extents_of(op.results[0])[dim]


@evaluate.register
def _(op: AllReduceOp, machine: Interpreter, args: Values) -> Values:
    return (reduced_over(args[0], op.kind.data, _group(op)),)


@evaluate.register
def _(op: RootReduceOp, machine: Interpreter, args: Values) -> Values:
    reduced = reduced_over(args[0], op.kind.data, _group(op))
    return (only_at_root(reduced, _group(op), op.root.value.data),)


@evaluate.register
def _(op: AllGatherOp, machine: Interpreter, args: Values) -> Values:
    return (_gathered(op, args[0], op.dim.data),)


def _gathered(op: CollectiveOp, value: Tensor, dim: str) -> Tensor:
    joined = join(value, dim, _group(op), _shard(op, dim))
    dims = tuple(extents_of(op.results[0]))
    return replace(joined, dims=dims, data=joined.view(joined.axes, dims))


@evaluate.register
def _(op: ReduceScatterOp, machine: Interpreter, args: Values) -> Values:
    reduced, dim = reduced_over(args[0], op.kind.data, _group(op)), op.dim.data
    return (split(reduced, dim, _group(op), _shard(op, dim)),)


@evaluate.register
def _(op: BroadcastOp, machine: Interpreter, args: Values) -> Values:
    return (instance(args[0], _group(op), op.root.value.data),)


@evaluate.register
def _(op: GatherOp, machine: Interpreter, args: Values) -> Values:
    gathered = _gathered(op, args[0], op.dim.data)
    return (only_at_root(gathered, _group(op), op.root.value.data),)


@evaluate.register
def _(op: ScatterOp, machine: Interpreter, args: Values) -> Values:
    value, dim = instance(args[0], _group(op), op.root.value.data), op.dim.data
    return (split(value, dim, _group(op), _shard(op, dim)),)


@evaluate.register
def _(op: AllToAllOp, machine: Interpreter, args: Values) -> Values:
    gathered, dim = _gathered(op, args[0], op.concat.data), op.split.data
    return (split(gathered, dim, _group(op), _shard(op, dim)),)


@evaluate.register
def _(op: SendOp, machine: Interpreter, args: Values) -> Values:
    ((axis, extent),) = _group(op).items()
    offset, wrap = op.offset.value.data, bool(op.wrap)
    return (shifted(args[0], axis, extent, offset, wrap),)


@evaluate.register
def _(op: RecvOp, machine: Interpreter, args: Values) -> Values:
    return args
