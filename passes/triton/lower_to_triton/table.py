"""
The table of `lower-to-triton`: which function writes an operation of a kernel.

Each has the decorator `@lowers(the op's class)`. It inserts operations of `tl` into a
scope and returns the block of the op's result; if there is not one result, it records
what there is in the values of the scope.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from comet.dialects.errors import OpError, about
from comet.op_table import OpTable
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.values import Scope, Tile

TABLE = OpTable[Scope, Tile | Buffer | None]()
lowers = TABLE.enter


def lower_ops(block: Block, scope: Scope) -> None:
    """Write the operations of a block, but not its terminator."""
    for op in list(block.ops)[:-1]:
        lower_op(op, scope)


def lower_op(op: Operation, scope: Scope) -> None:
    """
    Write one operation.

    Raises `PassFailedException` if it has no place in a kernel.
    """
    if (write := TABLE.find(op)) is None:
        raise OpError(
            op, f"lower-to-triton: {op.name} cannot be in a kernel of one GPU"
        )
    with about(op):
        value = write(op, scope)
    if value is not None:
        scope.values[op.results[0]] = value
