"""
How `lower-to-triton` writes copies: a load, a store, or nothing on the chip.

A value that a node yields to device memory is stored right where it is computed, to the
buffer of the result (its target). If the same program loads the value again, and only
some programs store the result, the value gets a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound.dims import element_type_of, level_of, names_of
from comet.dialects.compound.elementary import neutral_of
from comet.dialects.dataflow import SignalOp
from comet.dialects.schedule import CopyOp, YieldOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.triton.lower_to_triton.access import (
    LoadMask,
    home_of,
    load,
    scaled,
    store,
)
from comet.passes.triton.lower_to_triton.buffers import (
    MAX_INDEX,
    Buffer,
    buffer_at,
)
from comet.passes.triton.lower_to_triton.channels import grid_index
from comet.passes.triton.lower_to_triton.descriptors import (
    load_by_descriptor,
    store_by_descriptor,
)
from comet.passes.triton.lower_to_triton.table import lower_ops, lowers
from comet.passes.triton.lower_to_triton.values import Scope, Tile


def lower_body(
    node: NodeOp,
    scope: Scope,
    targets: Sequence[Buffer | None],
    accumulators: Mapping[SSAValue, Tile] | None = None,
) -> None:
    """
    Write the body of a node.

    What it yields to device memory is stored to its target. `accumulators` are those of
    yielded values that an inner node continues.
    """
    yielded = dict(zip(node.yielded, targets, strict=True))
    body = replace(scope, targets=yielded, accumulators=accumulators or {})
    lower_ops(node.body.block, body)
    for value, target in yielded.items():
        if target is not None:
            scope.values[value] = _stored(scope, value, target)


@lowers(CopyOp)
def lower_copy(op: CopyOp, scope: Scope) -> Tile | Buffer:
    """
    Write a copy: a load, a store, or nothing between levels of the chip.

    A stationary operand is loaded before the loop over tiles, where its slices begin.
    """
    if op.resident is not None:
        scope = replace(scope, early=home_of(scope, names_of(op.source)))
    found, target = scope.values[op.source], target_of(scope, op.result)
    if isinstance(found, Buffer):
        element = element_type_of(op.result)
        mask = LoadMask(op.masked, neutral_of(op.padding, element))
        if op.descriptor is not None:
            found = load_by_descriptor(scope, found, op.masked, _moved(op))
        else:
            found = load(scope, found, element, mask, _moved(op))
    elif target is not None and op.descriptor is not None:
        parts = 1 if op.parts is None else op.parts.value.data
        store_by_descriptor(scope, target, found, op.masked, parts, _moved(op))
    elif target is not None:
        store(scope, target, found, op.masked, _moved(op))
    finish_stores(op, scope)
    return found if target is None else target


def target_of(scope: Scope, value: SSAValue) -> Buffer | None:
    """Return where to store a value, None if it stays on the chip."""
    if level_of(value) != scope.level:
        return None
    target = scope.targets.get(value)
    if target is None:
        return allocate(scope, value)
    plain = target.within is None and not target.adds
    stored = target.pointer is not None and plain
    uses = (use.operation for use in value.uses)
    if stored or sum(not isinstance(op, SignalOp) for op in uses) == 1:
        return target
    return replace(allocate(scope, value), copy=target)


def allocate(scope: Scope, value: SSAValue) -> Buffer:
    """
    Return a new buffer in device memory for all tiles of a value.

    Programs along a dimension that the value lacks each have a copy of their own.
    """
    element, name = element_type_of(value), f"{value.name_hint or 'scratch'}_ptr"
    shape = {dim: scope.extents[dim] for dim in names_of(value)}
    loops = [loop for loop in scope.grid if loop.dim not in shape and loop.count > 1]
    counts = [loop.count for loop in loops]
    pointer = scope.memory.scratch_pointer(element, [*counts, *shape.values()], name)
    if not loops:
        return buffer_at(pointer, shape)
    wide = prod((*counts, *shape.values())) > MAX_INDEX
    offset = scaled(scope, grid_index(scope, loops), tuple(shape.items()), wide)
    address = scope.insert(tl.AddPtrOp(pointer, offset), f"own_{name}")
    return buffer_at(address, shape)


def finish_stores(op: Operation, scope: Scope) -> None:
    """Insert a barrier after stores of an op that the same program loads again."""
    following = op.next_op
    if isinstance(following, CopyOp) and _is_read_again(following, scope):
        return
    if _is_read_again(op, scope):
        scope.builder.insert(tl.DebugBarrierOp())


def _is_read_again(op: Operation, scope: Scope) -> bool:
    """Whether the body of a node uses what an operation stores to memory."""
    return any(
        level_of(result) == scope.level
        and not isinstance(use.operation, SignalOp | YieldOp)
        for result in op.results
        for use in result.uses
    )


def _stored(scope: Scope, value: SSAValue, target: Buffer) -> Buffer:
    """Store a yielded tile to its target, unless that has happened already."""
    found = scope.values.get(value)  # a product that is fused into its loop has none
    if isinstance(found, Tile):
        store(scope, target, found, None, f"{level_of(value)} -> {scope.level}")
    elif found is None or (found is not target and found.copy is not target):
        raise PassFailedException(
            f"lower-to-triton: {value.type} is yielded without being computed; "
            "load it into another level first"
        )
    return target


def _moved(op: CopyOp) -> str:
    """Return the levels between which a copy moves a tile, as comments have them."""
    return f"{level_of(op.source)} -> {level_of(op.result)}"
