"""
`insert-collectives`: annotated elementary level -> SPMD level.

Needs the shardings that `distribute` or the user wrote, on ops or on the arguments and
results of the function; a function without any runs on one device and stays as it is.
Arguments have their shardings, and results are resharded to theirs. Ops without a
sharding run on every instance, on whole operands; elementwise ops that only results
depend on get the sharding of these results.

Makes one `collective.spmd` region per function with local shapes, and the collectives
that the shardings imply: a reduction over a sharded dimension is completed by an
all-reduce, a fold by an all-gather of its partials and a fold that merges them or by
all-reduces of its rescaled partials, and a value that its user needs in another
sharding is resharded. Rejects shardings that do not fit the op, the value or the mesh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import copy_names
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding, SpmdOp, YieldOp
from comet.dialects.compound import Elementwise, FoldOp, SliceOp
from comet.dialects.errors import OpError, about
from comet.passes.analysis.dependence import loaded_dims
from comet.passes.analysis.levels import IRLevel
from comet.passes.analysis.padding import argument_of, is_border, unsliced
from comet.passes.function_pass import FunctionPass
from comet.passes.sharding.boundary import (
    boundary_of,
    check_boundary,
    drop_boundary,
    says_sharding,
)
from comet.passes.sharding.insert_collectives.local_body import (
    LocalBody,
    local_type,
    restricted,
)
from comet.passes.sharding.insert_collectives.local_fold import (
    Merger,
    gather_partials,
    reduce_partials,
)
from comet.passes.sharding.shardings import (
    ITERATING,
    MESH,
    SHARD,
    check_sharding,
    follows_readers,
    mesh_of,
    shardable_dims,
    sharding_of_op,
)


@dataclass(frozen=True)
class InsertCollectivesPass(FunctionPass):
    """Turn sharding annotations into local shapes and explicit collectives."""

    name = "insert-collectives"

    LEVELS = (IRLevel.ELEMENTARY,)

    partials: Literal["reduce"] | None = None
    """
    What merges the partials of a fold over a sharded dimension: all-reduces of the
    rescaled partials, or if unset an all-gather and a fold of all partials.
    """

    @property
    def merge(self) -> Merger:
        """The function that merges partials."""
        return gather_partials if self.partials is None else reduce_partials

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if says_sharding(function):
            build_region(function, plan_region(module, function), self.merge)


@dataclass(frozen=True)
class Returned:
    """A value that leaves the region."""

    value: SSAValue
    sharding: Sharding | None
    """The sharding of the result; None: that of the value."""
    positions: tuple[int, ...]
    """The indices of the function's results that it is."""


@dataclass(frozen=True)
class RegionPlan:
    """The plan of a function's region."""

    mesh: MeshOp
    shardings: dict[Operation, Sharding]
    """The sharding of the iterations of every op that computes, in order."""
    arguments: dict[SSAValue, Sharding]
    """The shardings of annotated arguments."""
    returned: tuple[Returned, ...]
    """The values that leave the region, each once."""


def plan_region(module: ModuleOp, func: FuncOp) -> RegionPlan:
    """
    Read the shardings of a function.

    Raises PassFailedException if one does not fit its op or the mesh.
    """
    mesh = mesh_of(func, module, "insert-collectives")
    ops = list(func.body.block.ops)
    terminator = ops.pop()
    assert isinstance(terminator, ReturnOp)
    computing = [op for op in ops if not follows_readers(op)]
    for op in computing:
        _check_sharding(op, sharding_of_op(op), mesh)
    check_boundary(func, mesh, "insert-collectives")
    boundary = boundary_of(func)
    held = zip(func.body.block.args, boundary.arguments, strict=True)
    dims = _loaded_dims(func.body.block, computing)
    computed = map(unsliced, terminator.operands)
    return RegionPlan(
        mesh,
        _shardings_of(dims, boundary.results),
        {argument: sharding for argument, sharding in held if sharding},
        _returned(list(zip(computed, boundary.results, strict=True))),
    )


def _shardings_of(
    dims: Mapping[Operation, frozenset[str]], results: Sequence[Sharding | None]
) -> dict[Operation, Sharding]:
    """
    Return the sharding of every op, in `dims` of it; `results` are the function's.

    Every instance computes completely what only constants have, also a fold of them.
    """

    def loaded(op: Operation, sharding: Sharding) -> Sharding:
        return {dim: axes for dim, axes in sharding.items() if dim in dims[op]}

    tail: dict[Operation, Sharding] = {}
    for op in reversed(list(dims)):
        if isinstance(op, Elementwise) and SHARD not in op.attributes:
            required = [_required(use, results, tail) for use in op.result.uses]
            first = required[0] if required else None
            if first is not None and required.count(first) == len(required):
                tail[op] = loaded(op, first)
    return {op: tail.get(op) or loaded(op, sharding_of_op(op)) for op in dims}


def _loaded_dims(
    block: Block, ops: Sequence[Operation]
) -> dict[Operation, frozenset[str]]:
    """Return the dimensions that the loaded values have that an op reads."""
    loaded = loaded_dims(block)
    return {op: frozenset[str]().union(*(loaded[v] for v in op.operands)) for op in ops}


def _required(
    use: Use, results: Sequence[Sharding | None], tail: Mapping[Operation, Sharding]
) -> Sharding | None:
    """Return the sharding that a result of the function requires of `use`."""
    if isinstance(use.operation, ReturnOp):
        return results[use.index]
    return tail.get(use.operation)


def _returned(
    results: Sequence[tuple[SSAValue, Sharding | None]],
) -> tuple[Returned, ...]:
    """Return the computed ones of `results`; equal ones in one sharding are one."""
    return tuple(
        Returned(*result, tuple(i for i, r in enumerate(results) if r == result))
        for index, result in enumerate(results)
        if argument_of(result[0]) is None and results.index(result) == index
    )


def _check_sharding(op: Operation, sharding: Sharding, mesh: MeshOp) -> None:
    dims = shardable_dims(op)
    if not isinstance(op, ITERATING):
        raise OpError(
            op,
            f"insert-collectives: '{op.name}' is no elementary op; run decompose first",
        )
    with about(op):
        check_sharding(sharding, dims, mesh, f"insert-collectives: '{op.name}'")


def build_region(func: FuncOp, plan: RegionPlan, merge: Merger) -> None:
    """Replace the ops of a function by one SPMD region."""
    body = LocalBody(plan.mesh, plan.arguments)
    for op, sharding in plan.shardings.items():
        _localise(body, op, sharding, merge)
    shardings = [
        body.sharding(r.value) if r.sharding is None else r.sharding
        for r in plan.returned
    ]
    wanted = zip(plan.returned, shardings, strict=True)
    body.block.add_op(YieldOp(*[body.fetch(r.value, s) for r, s in wanted]))
    spmd = SpmdOp(
        body.mesh_name,
        [outer for outer, _ in body.inputs],
        [dict(sharding) for _, sharding in body.inputs],
        [r.value.type for r in plan.returned],
        shardings,
        Region(body.block),
    )
    _replace_ops(func, spmd, plan.returned)


def _localise(
    body: LocalBody, op: Operation, sharding: Sharding, merge: Merger
) -> None:
    """Append the local form of `op`, and for a fold the merge of its partials."""
    operands = [body.fetch(value, sharding) for value in op.operands]
    regions = [body.local_region(region, sharding) for region in op.regions]
    local = type(op).create(
        operands=operands,
        result_types=[
            local_type(r.type, restricted(sharding, r), body.mesh) for r in op.results
        ],
        properties=op.properties,
        attributes={k: v for k, v in op.attributes.items() if k != SHARD},
        location=op.location,
        regions=regions,
    )
    copy_names(op.results, local.results)
    body.insert(local)
    results: Sequence[SSAValue] = local.results
    if isinstance(local, FoldOp) and local.dim.data in sharding:
        local.partial = UnitAttr()
        results = merge(body, local, sharding[local.dim.data])
    for old, new in zip(op.results, results, strict=True):
        body.hold(old, new)


def _replace_ops(func: FuncOp, spmd: SpmdOp, returned: Sequence[Returned]) -> None:
    """Insert the region before the slices, and erase what it replaces."""
    *ops, terminator = func.body.block.ops
    dropping = (op for op in ops if isinstance(op, SliceOp) and is_border(op))
    end = next(dropping, terminator)
    Rewriter.insert_op(spmd, InsertPoint.before(end))
    for old, new in zip(returned, spmd.outs, strict=True):
        new.name_hint = old.value.name_hint
        for position in old.positions:
            op = terminator.operands[position].owner
            if isinstance(op, SliceOp) and is_border(op):
                op.operands[0] = new
            else:
                terminator.operands[position] = new
    for op in reversed(ops):
        if not is_border(op):
            Rewriter.erase_op(op, safe_erase=False)
    func.attributes.pop(MESH, None)
    drop_boundary(func)
