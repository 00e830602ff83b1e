"""Checks of IR that has just been read, before its ops verify what is around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OpDef, traits_def
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

from comet.dialects.parents import HasParentNamed

VISIBILITIES = ("public", "private", "nested")
"""How far a symbol may be seen; xDSL prints any other word, and does not read it."""


def check_structure(module: ModuleOp) -> None:
    """
    Check that every op has the operands, attributes and parents of its definition.

    `Operation.verify` starts with the innermost ops, and their own checks rely on those
    around them: a `func.return` on the type of its function. This looks at all ops
    before any of them looks at others. Raises VerifyException as `Operation.verify`
    does.
    """
    for op in module.walk():
        if isinstance(op, IRDLOperation):
            try:
                _alone(type(op)).verify(op)
                _check_visibility(op)
                for kind in (HasParent, HasParentNamed):
                    for trait in op.get_traits_of_type(kind):
                        trait.verify(op)
            except VerifyException as error:
                op.emit_error(f"Operation does not verify: {error}", error)


def _check_visibility(op: Operation) -> None:
    visibility = op.get_attr_or_prop("sym_visibility")
    if isinstance(visibility, StringAttr) and visibility.data not in VISIBILITIES:
        raise VerifyException(
            f"'{op.name}' op the visibility of a symbol is '{visibility.data}'; write "
            "public, private or nested"
        )


@cache
def _alone(kind: type[IRDLOperation]) -> OpDef:
    """Return the definition of an op without the traits, which look at other ops."""
    return replace(kind.get_irdl_definition(), traits=traits_def())


def verify_definitions(module: ModuleOp) -> None:
    """
    Raise `VerifyException` for a value that is used before it is defined.

    A definition has to dominate its uses. xDSL says which blocks dominate which others
    (`xdsl.irdl.dominance`), but its verifier does not look at uses.
    """
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
    """Yield an op and the ops around it, each with the block that it is in."""
    outer: Operation | None = op
    while outer is not None and (block := outer.parent) is not None:
        yield outer, block
        outer = outer.parent_op()
