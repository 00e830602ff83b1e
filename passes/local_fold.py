"""
The partials of a fold over a shared dimension: laid side by side, merged by a fold.

A fold of a known form joins all partials of a chunk at once. Of any other only the
merge of two is known, so its partials are merged element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue

from comet.dialects.collective import AllGatherOp
from comet.dialects.compound import FoldOp, ReduceKind, ReduceOp
from comet.dialects.compound_dims import (
    element_type_of,
    extents_of,
    level_of,
    tensor,
    with_extents,
)
from comet.passes.local_body import LocalBody
from comet.passes.shardings import part_dim
from comet.passes.streams import form_of


def merge_partials(
    body: LocalBody, local: FoldOp, axes: tuple[str, ...]
) -> Sequence[SSAValue]:
    """Append the all-gathers of a fold's results over `axes`, and their merge."""
    count = body.mesh.size(axes)
    dim = part_dim(axes)
    stacks = [_stack(body, out, dim, count, axes) for out in local.outs]
    merged = merging_fold(local, dim, stacks)
    body.insert(merged)
    return merged.outs


def merging_fold(fold: FoldOp, dim: str, stacks: Sequence[SSAValue]) -> FoldOp:
    """Return the fold that merges partials of `fold`, which are laid along `dim`."""
    form, carries = form_of(fold), [out.type for out in fold.outs]
    if form is None:
        step = _merge_step(fold, stacks, dim)
    else:
        step = form.join_region(dim, [stack.type for stack in stacks], carries)
    merged = FoldOp(dim, stacks, list(fold.init), step, fold.merge.clone())
    for old, new in zip(fold.outs, merged.outs, strict=True):
        new.name_hint = old.name_hint
    return merged


def _stack(
    body: LocalBody, partial: SSAValue, dim: str, count: int, axes: tuple[str, ...]
) -> SSAValue:
    extents = {dim: count} | extents_of(partial)
    type_ = tensor(extents, element_type_of(partial), level_of(partial))
    gather = AllGatherOp(dim, partial, body.mesh_name, axes, type_)
    return body.insert(gather, f"{partial.name_hint or 'carry'}_parts")


def _merge_step(local: FoldOp, stacks: Sequence[SSAValue], dim: str) -> Region:
    """Return a step that merges a chunk of one partial into the carries."""
    chunks = [with_extents(stack.type, {dim: 1}) for stack in stacks]
    carries = [out.type for out in local.outs]
    block = Block(arg_types=[*chunks, *carries])
    arguments = list(block.args)
    partials: list[SSAValue] = []
    for chunk, carry in zip(arguments[: len(chunks)], carries, strict=True):
        only = ReduceOp(ReduceKind.ADD, chunk, carry)
        block.add_op(only)
        partials.append(only.result)
    merge = local.merge.block
    both = [*arguments[len(chunks) :], *partials]
    values: dict[SSAValue, SSAValue] = dict(zip(merge.args, both, strict=True))
    return _append(block, merge, values)


def _append(block: Block, source: Block, values: dict[SSAValue, SSAValue]) -> Region:
    for op in source.ops:
        block.add_op(op.clone(values))
    return Region(block)
