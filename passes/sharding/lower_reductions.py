"""
`lower-reductions`: SPMD level -> SPMD level, with collectives that only move data.

For GPUs, after `place-collectives`. The instances of a group exchange their terms,
concatenated along a new dimension, and each instance reduces them locally: an
all-reduce becomes an all-gather and a reduction, a reduce-scatter becomes an all-to-all
and a reduction. The reduction is an ordinary op, which can be fused.

If the result is only renamed, the terms are renamed instead: this is free, as they are
in memory, while a rename of the result would end a kernel. If all ranks gather a
scattered sum and then only cast it to fewer bits, the cast comes before the gather;
with `terms=narrow` the terms of such a sum are cast before they are sent. All other
collectives stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    ReduceScatterOp,
)
from comet.dialects.compound import CastOp, ReduceOp, RenameOp
from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    tensor,
    unused,
    with_element_type,
    with_names,
)
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.graph.emitter import Emitter
from comet.passes.sharding.shardings import part_dim

Terms: TypeAlias = Literal["wide", "narrow"]


@dataclass(frozen=True)
class LowerReductionsPass(FunctionPass):
    """Replace reducing collectives by an exchange of terms and a local reduction."""

    name = "lower-reductions"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    terms: Terms = "wide"
    """
    The type in which terms are sent whose sum is only cast to fewer bits: that of the
    sum, or that of the cast, which rounds each term before it is added to the others.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for cast in plan_casts(function):
            gather_cast(cast)
        for reduction in plan_reductions(function, self.terms):
            apply_reduction(reduction)


@dataclass(frozen=True)
class LoweredReduction:
    """The lowered form of one reducing collective."""

    op: AllReduceOp | ReduceScatterOp
    dim: str
    """The new dimension, with the terms of one instance per element."""
    terms: TensorType[Element]
    """The type of all terms that an instance reduces, as they are sent."""
    rename: RenameOp | None
    """The only reader of the result, if it gives dimensions other names."""


def plan_casts(func: FuncOp) -> list[CastOp]:
    """Return the casts to fewer bits that alone read a gathered reduce-scatter."""
    return [
        op
        for op in func.walk()
        if isinstance(op, CastOp)
        and op.added_bits < 0
        and op.input.has_one_use()
        and isinstance(gather := op.input.owner, AllGatherOp)
        and isinstance(gather.input.owner, ReduceScatterOp)
    ]


def gather_cast(cast: CastOp) -> None:
    """Gather what a cast makes of a shard, in place of a cast of what is gathered."""
    gather = cast.input.owner
    assert isinstance(gather, AllGatherOp)
    shard = tensor(extents_of(gather.input), element_type_of(cast.result))
    narrow = CastOp(gather.input, shard)
    mesh, dim = gather.mesh.string_value(), gather.dim.data
    moved = AllGatherOp(
        narrow.result, mesh, gather.axis_names, cast.result.type, dim=dim
    )
    moved.from_level, moved.to_level = gather.from_level, gather.to_level
    moved.algorithm = gather.algorithm
    narrow.result.name_hint = moved.result.name_hint = cast.result.name_hint
    Rewriter.replace_op(cast, [narrow, moved], [moved.result])
    Rewriter.erase_op(gather)


def plan_reductions(func: FuncOp, terms: Terms) -> list[LoweredReduction]:
    """Return the reducing collectives of a function, in order."""
    return [
        _plan(op, terms)
        for op in func.walk()
        if isinstance(op, AllReduceOp | ReduceScatterOp)
    ]


def _plan(op: AllReduceOp | ReduceScatterOp, terms: Terms) -> LoweredReduction:
    extents, rename = extents_of(op.result), _only_rename(op)
    names = extents if rename is None else extents | extents_of(rename.result)
    dim = unused(part_dim(op.axis_names), names)
    element = element_type_of(op.result)
    if terms == "narrow":
        element = _narrow_type((rename or op).result, element)
    sent = tensor({dim: op.group_size, **extents}, element)
    return LoweredReduction(op, dim, sent, rename)


def _narrow_type(value: SSAValue, element: Element) -> Element:
    """Return the type to which all readers cast a value to fewer bits, else its own."""
    readers = [use.operation for use in value.uses]
    casts = [op for op in readers if isinstance(op, CastOp) and op.added_bits < 0]
    found = {element_type_of(op.result) for op in casts}
    return found.pop() if len(casts) == len(readers) and len(found) == 1 else element


def _only_rename(op: AllReduceOp | ReduceScatterOp) -> RenameOp | None:
    """Return the renaming that alone reads the result, if there is one."""
    readers = [use.operation for use in op.result.uses]
    match readers:
        case [RenameOp() as rename] if not rename.reshapes:
            return rename
        case _:
            return None


def apply_reduction(reduction: LoweredReduction) -> None:
    """Replace a collective by the exchange of its terms, and their reduction."""
    op, rename, last = reduction.op, reduction.rename, reduction.rename or reduction.op
    emit, name = Emitter(op), f"{op.input.name_hint or 'x'}_terms"
    moved = _exchange(reduction, _cast(emit, op.input, reduction.terms))
    moved.from_level, moved.to_level = op.from_level, op.to_level
    terms = emit.insert(moved, name)
    if rename is not None:
        renamed = with_names(reduction.terms, rename.renaming)
        terms = emit.insert(RenameOp(terms, renamed), name)
    terms = _cast(emit, terms, op.result.type)
    reduced = emit.insert(
        ReduceOp(op.kind.data, terms, last.result.type), last.result.name_hint
    )
    Rewriter.replace_op(last, (), [reduced])
    if rename is not None:
        Rewriter.erase_op(op)


def _cast(emit: Emitter, value: SSAValue, like: Attribute) -> SSAValue:
    """Return a value in the element type of another tensor."""
    element = element_type_of(like)
    if element_type_of(value) == element:
        return value
    cast = CastOp(value, with_element_type(value.type, element))
    return emit.insert(cast, value.name_hint)


def _exchange(
    reduction: LoweredReduction, operand: SSAValue
) -> AllGatherOp | AllToAllOp:
    """Return the collective that brings its terms to each instance."""
    op, mesh = reduction.op, reduction.op.mesh.string_value()
    group = operand, mesh, op.axis_names, reduction.terms
    if isinstance(op, AllReduceOp):
        return AllGatherOp(*group, dim=reduction.dim)
    return AllToAllOp(*group, split=op.dim.data, concat=reduction.dim)
