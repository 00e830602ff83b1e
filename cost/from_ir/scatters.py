"""The costs of scattering the results of a kernel: bytes, and registers."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.ir import OpResult, SSAValue

from comet.cost.from_ir.memory import vector_width
from comet.cost.from_ir.products import tile_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import REGISTER
from comet.cost.gpu.terms import Term
from comet.cost.gpu.triton_rules import CopyRules
from comet.dialects.compound import ScatterAddOp
from comet.dialects.compound.dims import bits_of, extents_of, names_of
from comet.dialects.compound.gather import scatterings, stored_values
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp

POINTER = 8
"""Bytes of an address."""


def added_width(op: ScatterAddOp, limit: int) -> int:
    """Return the bytes, at most `limit`, that a thread adds at a time to a row."""
    if names_of(op.result)[-1] == op.into:
        return bits_of(op.result) // 8
    return vector_width(op.result, limit)


def additions(node: SpatialOp) -> tuple[ScatterAddOp, ...]:
    """Return the additions to rows of memory that a kernel's node scatters."""
    return tuple(op for value in node.outs for op in scatterings(value))


def addition_addresses(node: SpatialOp, gpu: Device) -> Iterator[tuple[Term, ...]]:
    """Yield the registers for addresses of each of the `additions` of a node, bytes."""
    for op in additions(node):
        width = added_width(op, gpu.memory.load_bytes)
        registers = addresses(op.values, width, (), gpu.triton.copies)
        yield () if registers is None else (registers,)


def times_stored(node: SpatialOp) -> Iterator[tuple[SSAValue, int]]:
    """Yield tiles of what a kernel's node scatters, and how often their bytes move."""
    for value, tile in zip(node.outs, node.yielded, strict=True):
        while scatterings(value):
            yield tile, _stores(value) + 2 * len(scatterings(value))
            if not isinstance(tile, OpResult) or not isinstance(tile.op, NodeOp):
                break
            tile = tile.op.yielded[tile.index]


def _stores(value: SSAValue) -> int:
    """Return 1 if a kernel stores a result as it is, 0 if it only scatters it."""
    return len(stored_values(value)) - len(scatterings(value))


def scattered_bytes(value: SSAValue) -> float:
    """
    Return the bytes of device memory for an element that a kernel scatters, and stores.

    Sums are read and written. Several terms of one meet in L2, so device memory does
    not see more than all sums have.
    """
    elements = max(1, prod(extents_of(value).values()))
    sums = (prod(extents_of(op.result).values()) for op in scatterings(value))
    moved = sum(2 * min(1.0, count / elements) for count in sums)
    return bits_of(value) / 8 * (_stores(value) + moved)


def moved(value: SSAValue) -> Term:
    """Return the bytes of device memory that move for a tensor."""
    term = tile_bytes(value)
    if scatterings(value):
        return term._replace(weight=scattered_bytes(value))
    return term


def addresses(
    tile: SSAValue, width: int, loops: tuple[str, ...], rules: CopyRules
) -> Term | None:
    """
    Return the registers (bytes) for accesses of `width` bytes to a tile, None if they
    are wide.

    Each narrow load, or addition to memory, has an address; the values of the narrowest
    pass through registers, too.
    """
    if width >= rules.free_load_bytes:
        return None
    registers = POINTER if width >= rules.copy_bytes else POINTER + REGISTER
    per_element = bits_of(tile) / 8 / width
    return Term(names_of(tile), registers * per_element, loops)
