"""
`lower-views`: elementary or SPMD level -> same level, with views that GPUs can load.

A slice, a concat, or a rename that splits or merges axes is no kernel of its own:
kernels that read it compute other addresses. For that, its operands must be in memory,
with a constant stride along each axis. The pass

* copies operands that are not;
* writes a pad as a concat of the value and a constant;
* writes a scatter of a value that every rank has whole as a gather of the positions of
  the rank;
* writes a concat of negated values (rotary embeddings) as a product with signs, so that
  the negated values need not be stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from comet.dialects.collective import ScatterOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.spmd import region_states
from comet.dialects.collective.state import States
from comet.dialects.compound import (
    CastOp,
    ConcatOp,
    ContractOp,
    FillOp,
    FoldOp,
    GatherOp,
    IndexOp,
    MapKind,
    MapOp,
    PadOp,
    ReduceOp,
    RenameOp,
    ScatterAddOp,
    SliceOp,
    View,
)
from comet.dialects.compound.dims import (
    extents_of,
    float_type_of,
    names_of,
    tensor,
    unused,
    with_extents,
)
from comet.dialects.compound.map import FoldMap
from comet.dialects.compound.rename import viewed
from comet.dialects.compound.views import merges_pages
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import (
    IRLevel,
    compute_block,
    spmd_region,
)
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class LowerViewsPass(FunctionPass):
    """
    Copy the operands of views that have no strides, and write pads as concats.

        Before: any pads, slices, concats, renames and scatters to ranks. After:

    * no pads; a scatter is a `compound.gather`, by which a rank loads its shard; a
    slice
      names its dimension; signs are factors of a concat;
    * copies (`compound.map copy`) of operands of views that have no strides in one
      tensor, or come from other ranks; of views and positions that are returned or
      sent; and of values that `compound.scatter_add` adds, unless an op computes them
      on which the ids do not depend.

    Without ranks, a rename of a computed result is returned as it is: it is the memory
    that a kernel stores, with another shape.

    """

    name = "lower-views"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        # Views of what `fuse` folds, such as x * 1, would see its operand.
        PatternRewriteWalker(FoldMap()).rewrite_region(function.body)
        lower_pads(function)
        lower_scatters(function)
        factor_signs(function)
        copy_operands(plan_copies(function))
        copy_scattered(function)


def lower_pads(func: FuncOp) -> None:
    """
    Write the pads of a function as concats, and name the dimensions of slices.

    Raises PassFailedException for a pad of a dimension of which ranks have shards.
    """
    region = spmd_region(func)
    states = {} if region is None else region_states(region)
    for op in list(func.walk()):
        if isinstance(op, PadOp):
            _check_whole(op, func, states)
            Rewriter.replace_op(op, (), [_padded(op)])
        elif isinstance(op, SliceOp) and op.dim is None:
            first = dict.fromkeys(op.offsets, 0)
            sizes = {dim: extents_of(op.result)[dim] for dim in first}
            Rewriter.replace_op(op, (), [_first(op.input, sizes, op)])


def lower_scatters(func: FuncOp) -> None:
    """
    Write the scatters of a function as gathers: a rank loads its shard of the value.

    Other scatters stay, and so does the error of `fuse`: of a value that one root has,
    or of which ranks have shards along the dimension already.
    """
    region = spmd_region(func)
    states = {} if region is None else region_states(region)
    ops = (op for op in compute_block(func).ops if isinstance(op, ScatterOp))
    for op in [op for op in ops if _all_have(op, states)]:
        Rewriter.replace_op(op, (), [_shard(op)])


def _all_have(op: ScatterOp, states: States) -> bool:
    """Return whether every rank has all positions that a scatter splits."""
    if (state := states.get(op.input)) is None:
        return False
    roots = {axis for axes in state.rooted for axis in axes}
    return roots.isdisjoint(op.axis_names) and not state.splits(op.dim.data)


def _shard(op: ScatterOp) -> SSAValue:
    """Return the shard of a rank: the rows of its positions."""
    dim = op.dim.data
    shard, whole = (extents_of(value)[dim] for value in (op.result, op.input))
    row = unused(f"{dim}_shard", names_of(op.input))
    index = IndexOp(tensor({row: shard}, i32), whole, op.axis_names)
    gather = GatherOp(op.input, _inserted(index, op, op.result), dim)
    rename = RenameOp(_inserted(gather, op, op.result), op.result.type)
    return _inserted(rename, op, op.result)


def _check_whole(op: PadOp, func: FuncOp, states: States) -> None:
    """Raise PassFailedException for a pad of shards, whose end another rank has."""
    shards = states[op.input].sharded.values() if op.input in states else ()
    for dim in op.extents:
        if dim in shards:
            raise OpError(
                op,
                f"lower-views: @{func.sym_name.data} has '{op.name}' of {dim} in a "
                "region of ranks that have shards of it, and its end is that of "
                "another rank; pad before the region is made",
            )


def _first(value: SSAValue, sizes: dict[str, int], before: Operation) -> SSAValue:
    """Return the first positions of `value` along some dimensions."""
    for dim, size in sizes.items():
        if extents_of(value)[dim] != size:
            prefix = SliceOp(value, with_extents(value.type, {dim: size}), dim)
            value = _inserted(prefix, before, value)
    return value


def _padded(op: PadOp) -> SSAValue:
    """Return the concat of the true positions of a value and a constant."""
    value = op.input
    for dim, true in op.extents.items():
        padded = extents_of(op.result)[dim]
        value = _first(value, {dim: true}, op)
        if padded > true:
            end = FillOp(op.number, with_extents(value.type, {dim: padded - true}))
            after = _inserted(end, op, op.result)
            value = _inserted(ConcatOp(dim, [value, after]), op, op.result)
    return value


def factor_signs(func: FuncOp) -> None:
    """Write concats of negated values as products of a concat and signs."""
    for op in list(compute_block(func).ops):
        if isinstance(op, ConcatOp) and any(map(_negated, op.inputs)):
            dim, parts = op.dim.data, [_negated(v) or v for v in op.inputs]
            type_, signs = op.result.type, list[SSAValue]()
            for value, part in zip(op.inputs, parts, strict=True):
                extent = {dim: extents_of(value)[dim]}
                sign = FillOp(
                    1.0 if value is part else -1.0, tensor(extent, float_type_of(value))
                )
                signs.append(_inserted(sign, op, value))
            joined = _inserted(ConcatOp(dim, parts), op, op.result)
            factors = _inserted(ConcatOp(dim, signs), op, op.result)
            product = MapOp(MapKind.MULT, [joined, factors], type_)
            Rewriter.replace_op(op, (), [_inserted(product, op, op.result)])


def _negated(value: SSAValue) -> SSAValue | None:
    """Return the operand of a negation with one reader, None for other values."""
    op = value.owner
    if isinstance(op, MapOp) and op.kind.data is MapKind.NEG and value.has_one_use():
        return op.inputs[0]
    return None


def _inserted(op: Operation, before: Operation, like: SSAValue) -> SSAValue:
    op.results[0].name_hint = like.name_hint
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


@dataclass(frozen=True)
class CopiedOperand:
    """An operand of a view that has to be copied to memory."""

    op: Operation
    index: int


def plan_copies(func: FuncOp) -> list[CopiedOperand]:
    """Return the operands that have to be copied, in order."""
    return [
        CopiedOperand(op, index)
        for op in compute_block(func).ops
        for index, value in enumerate(op.operands)
        if _needs_copy(op, value)
    ]


COMPUTING = (MapOp, CastOp, ContractOp, ReduceOp, FoldOp)
"""Ops whose results kernels store."""


_SCATTERED = (ConcatOp, IndexOp, GatherOp)
"""Ops whose results have no strides in one tensor."""


def _needs_copy(op: Operation, value: SSAValue) -> bool:
    """Whether `op` cannot read `value`, which may be a view, without a copy."""
    seen = viewed(value).owner
    if isinstance(op, ReturnOp) and isinstance(seen, COMPUTING):
        return False
    if op.has_trait(IsTerminator):
        return isinstance(value.owner, View | IndexOp)
    sent = isinstance(seen, CollectiveOp)
    match op:
        case CollectiveOp():
            return isinstance(value.owner, View | IndexOp)
        case RenameOp() if merges_pages(op):
            return False
        case RenameOp() if op.merged:
            gaps = () if op.dropped else (SliceOp,)
            return _sees(value, (*_SCATTERED, *gaps, CollectiveOp))
        case RenameOp():
            uneven = _sees(value, (ConcatOp, IndexOp)) or _views_pages(value)
            return op.cut is not None and uneven
        case ConcatOp():
            return sent or _sees(value, (GatherOp,))
        case GatherOp() if value is op.table:
            return sent or _sees(value, _SCATTERED)
        case _:
            return sent and isinstance(op, View | ScatterAddOp)


def _sees(value: SSAValue, kinds: tuple[type[Operation], ...]) -> bool:
    """Whether an op of some kinds defines `value`, or a value that it views."""
    op = value.owner
    through = isinstance(op, View) and any(_sees(v, kinds) for v in op.operands)
    return through or isinstance(op, kinds)


def _views_pages(value: SSAValue) -> bool:
    """Whether `value` views gathered pages with their rows as one dimension."""
    op = value.owner
    if isinstance(op, RenameOp) and merges_pages(op):
        return True
    return isinstance(op, View) and any(map(_views_pages, op.operands))


def copy_scattered(func: FuncOp) -> None:
    """
    Copy the values that scatters add, so that a kernel computes them.

    No copy is needed if an op computes the values on which the ids do not depend.
    """
    ops = list(compute_block(func).ops)
    for op in ops:
        if isinstance(op, ScatterAddOp):
            before = defining_ops((op.ids,), set(ops))
            producer = op.values.owner
            if not isinstance(producer, COMPUTING) or producer in before:
                copy = MapOp(MapKind.COPY, [op.values], op.values.type)
                op.operands[0] = _inserted(copy, op, op.values)


def copy_operands(uses: Iterable[CopiedOperand]) -> None:
    """Copy the value of each operand, once, before the first op that needs it."""
    copies: dict[SSAValue, SSAValue] = {}
    for use in uses:
        value = use.op.operands[use.index]
        if value not in copies:
            copy = MapOp(MapKind.COPY, [value], value.type)
            copies[value] = _inserted(copy, use.op, value)
        use.op.operands[use.index] = copies[value]
