"""
What registers hold in loops along rows, where a kernel computes op after op.

Read in live ranges of kernels without products that Triton 3.9 compiles for gfx942
(`tests/data/row_loops_gfx942.csv`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.gpu.terms import Term
from comet.dialects.compound import CastOp, Elementwise, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, names_of

PACKED = (MapKind.ADD, MapKind.SUB, MapKind.MULT)
"""Ops that one instruction computes for two elements."""
REGISTER = 4
"""Bytes of an element while it is rounded."""


def kept_values(body: Body) -> Iterator[BlockArgument]:
    """Yield the values that the iterations of a loop read and do not change."""
    if body.loop is not None:
        for value in body.node.body.block.args[: len(body.node.ins)]:
            changed = body.loop.factors.keys() & set(names_of(value))
            if not changed and value not in body.late:
                yield value


def doubled_values(
    body: Body, kept: Collection[BlockArgument]
) -> Iterator[BlockArgument]:
    """
    Yield those of the values `kept` in a loop that a thread has twice.

    Instructions for two elements read a number of their row in two registers, and LLVM
    copies what an op computed before the loop to a second one (v_pk_mul_f32 of pairs).
    What a loop gave it reads twice from one (op_sel).
    """
    for value in kept:
        source = body.node.ins[value.index].owner
        readers = [use.operation for use in value.uses]
        if isinstance(source, Elementwise) and any(
            isinstance(op, MapOp) and op.kind.data in PACKED and _broadcasts(op, value)
            for op in readers
        ):
            yield value


def _broadcasts(op: MapOp, value: SSAValue) -> bool:
    """Return whether an op combines a value with each element of rows or columns."""
    return set(names_of(value)) < set(names_of(op.result))


def rounded_tiles(op: Operation, fraction: float) -> Iterator[Term]:
    """
    Yield the part of a tile that is in registers twice while `op` rounds it to bf16.

    Without an instruction, v_add3_u32 adds what rounds, and v_cmp_o_f32 and
    v_cndmask_b32 replace NaN: both need the number, too. After a division, which takes
    ten instructions itself, LLVM rounds element after element.
    """
    if not isinstance(op, CastOp) or op.added_bits >= 0:
        return
    source = op.input.owner
    divides = isinstance(source, MapOp) and source.kind.data is MapKind.DIV
    if isinstance(element_type_of(op.result), BFloat16Type) and not divides:
        yield Term(names_of(op.result), REGISTER * fraction)
