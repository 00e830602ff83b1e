"""
Rejects values that are used where their definition does not reach.

A definition has to dominate its uses. xDSL says which blocks dominate which others
(`xdsl.irdl.dominance`), but its verifier does not look at uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.utils.exceptions import VerifyException


def verify_definitions(module: ModuleOp) -> None:
    """Raise `VerifyException` for a value that is used before it is defined."""
    numbers = {op: number for number, op in enumerate(module.walk())}
    for op in numbers:
        for value in op.operands:
            if not _reaches(value, op, numbers):
                _reject(op, value)


def _reject(op: Operation, value: SSAValue) -> None:
    raise VerifyException(
        f"'{op.name}' op uses %{value.name_hint or 'a value'} before it is defined; "
        "move the definition up"
    )


def _reaches(value: SSAValue, user: Operation, numbers: dict[Operation, int]) -> bool:
    """
    Whether the definition of a value dominates an op that uses it.

    `numbers` are those of ops in the order of the text.
    """
    made = value.owner
    home = made if isinstance(made, Block) else made.parent
    for op, block in _around(user):
        if block is home:
            return isinstance(made, Block) or numbers[made] < numbers[op]
        if home is not None and block.parent is home.parent:
            region = block.parent
            return region is not None and DominanceInfo(region).dominates(home, block)
    return False


def _around(op: Operation) -> Iterator[tuple[Operation, Block]]:
    """Yield an op and the ops around it, each with the block that it stands in."""
    outer: Operation | None = op
    while outer is not None and (block := outer.parent) is not None:
        yield outer, block
        outer = outer.parent_op()
