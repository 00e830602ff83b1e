"""
The partials of a fold over a sharded dimension, and how they are merged.

All partials are concatenated, and then merged by a fold; or each instance rescales its
partial to what a first all-reduce gives, and further all-reduces complete it. A fold of
a known form, or one that merges each iter_arg by a sum or a maximum, joins all partials
of a chunk at once. For others only the merge of two is known, so their partials are
merged element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import copy_names, yielded_by
from comet.dialects.collective import AllGatherOp, AllReduceOp
from comet.dialects.compound import FoldOp, MapOp, ReduceKind, ReduceOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    tensor,
    with_extents,
)
from comet.passes.graph.emitter import Emitter
from comet.passes.graph.stream.forms import form_of
from comet.passes.sharding.insert_collectives.local_body import LocalBody
from comet.passes.sharding.shardings import part_dim


class GroupEmitter(Emitter):
    """Inserts ops into a body; a reduction over the partials is an all-reduce."""

    def __init__(self, body: LocalBody, axes: tuple[str, ...]):
        super().__init__(body.block)
        self._body = body
        self._axes = axes

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Insert an operation and return its first result."""
        return self._body.insert(op, name)

    def reduce(
        self, kind: ReduceKind, value: SSAValue, dim: str, name: str | None = None
    ) -> SSAValue:
        """Reduce `value` over the instances along the axes, which are `dim`."""
        op = AllReduceOp(value, self._body.mesh_name, self._axes, kind=kind)
        return self.insert(op, name)


def reduce_partials(
    body: LocalBody, local: FoldOp, axes: tuple[str, ...]
) -> Sequence[SSAValue]:
    """
    Append the all-reduces over `axes` that merge the results of a fold.

    Raises PassFailedException if only the merge of two partials is known.
    """
    emit, dim = GroupEmitter(body, axes), part_dim(axes)
    if (form := form_of(local)) is not None:
        return form.join(emit, dim, local.outs)
    if (kinds := _kinds_of(local.merge.block)) is not None:
        pairs = zip(kinds, local.outs, strict=True)
        return [emit.reduce(k, out, dim, out.name_hint) for k, out in pairs]
    raise PassFailedException(
        f"insert-collectives: 'compound.fold' over {local.dim.data} is spread over "
        f"{', '.join(axes)}, and no reductions of all its partials are known, only the "
        "merge of two; distribute another dimension"
    )


def gather_partials(
    body: LocalBody, local: FoldOp, axes: tuple[str, ...]
) -> Sequence[SSAValue]:
    """
    Append the all-gathers of a fold's results over `axes`, and their merge.

    There is one exchange for each memory level, the innermost first: programs that
    share memory merge what they have before others wait for it.
    """
    partials: Sequence[SSAValue] = local.outs
    for group in body.mesh.by_level(axes):
        dim, count = part_dim(group), body.mesh.size(group)
        stacks = [_stack(body, out, dim, count, group) for out in partials]
        merged = merging_fold(local, dim, stacks)
        body.insert(merged)
        partials = merged.outs
    return partials


def merging_fold(fold: FoldOp, dim: str, stacks: Sequence[SSAValue]) -> FoldOp:
    """Return the fold that merges partials of `fold`, concatenated along `dim`."""
    form, iter_args = form_of(fold), [out.type for out in fold.outs]
    if form is not None:
        step = form.join_region(dim, [stack.type for stack in stacks], iter_args)
    elif (kinds := _kinds_of(fold.merge.block)) is not None:
        step = _merge_step(fold, [stack.type for stack in stacks], kinds)
    else:
        chunks = [with_extents(stack.type, {dim: 1}) for stack in stacks]
        step = _merge_step(fold, chunks, [ReduceKind.ADD] * len(chunks))
    merged = FoldOp(dim, stacks, list(fold.init), step, fold.merge.clone())
    copy_names(fold.outs, merged.outs)
    return merged


def _stack(
    body: LocalBody, partial: SSAValue, dim: str, count: int, axes: tuple[str, ...]
) -> SSAValue:
    extents = {dim: count} | extents_of(partial)
    type_ = tensor(extents, element_type_of(partial), level_of(partial))
    gather = AllGatherOp(partial, body.mesh_name, axes, type_, dim=dim)
    return body.insert(gather, f"{partial.name_hint or 'iter_arg'}_parts")


def _kinds_of(merge: Block) -> list[ReduceKind] | None:
    """Return how the iter_args are merged, if each is merged by its own reduction."""
    yielded, kinds = yielded_by(merge), list[ReduceKind]()
    for index, value in enumerate(yielded):
        pair = {merge.args[index], merge.args[len(yielded) + index]}
        combine = value.owner
        if not isinstance(combine, MapOp) or set(combine.inputs) != pair:
            return None
        if str(combine.kind.data) not in set(map(str, ReduceKind)):
            return None
        kinds.append(ReduceKind(str(combine.kind.data)))
    return kinds


def _merge_step(
    local: FoldOp, chunks: Sequence[Attribute], kinds: Sequence[ReduceKind]
) -> Region:
    """
    Return a step that reduces a chunk of partials and merges it into the iter_args.
    """
    iter_args = [out.type for out in local.outs]
    block = Block(arg_types=[*chunks, *iter_args])
    arguments = list(block.args)
    partials: list[SSAValue] = []
    for kind, chunk, iter_arg in zip(kinds, arguments, iter_args, strict=False):
        only = ReduceOp(kind, chunk, iter_arg)
        block.add_op(only)
        partials.append(only.result)
    merge = local.merge.block
    both = [*arguments[len(chunks) :], *partials]
    values: dict[SSAValue, SSAValue] = dict(zip(merge.args, both, strict=True))
    block.add_ops([op.clone(values) for op in merge.ops])
    return Region(block)


Merger: TypeAlias = Callable[[LocalBody, FoldOp, tuple[str, ...]], Sequence[SSAValue]]
"""Appends what merges the results of a local fold over axes; returns the whole ones."""
