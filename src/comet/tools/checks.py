"""Checks of parsed IR, before its ops verify what is around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OpDef, traits_def
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

from comet.dialects.errors import about
from comet.dialects.parents import HasParentNamed

VISIBILITIES = ("public", "private", "nested")
"""The visibilities of a symbol; xDSL prints any other word, but does not parse it."""


def check_structure(module: ModuleOp) -> None:
    """
    Check that every op has the operands, attributes and parents of its definition.

    `Operation.verify` starts with the innermost ops, and their checks rely on the ops
    around them: `func.return` on the type of its function. This checks each op alone,
    before any check that reads other ops. Raises VerifyException with the op.
    """
    for op in module.walk():
        if isinstance(op, IRDLOperation):
            with about(op):
                _alone(type(op)).verify(op)
                _check_visibility(op)
                _check_signature(op)
                for kind in (HasParent, HasParentNamed):
                    for trait in op.get_traits_of_type(kind):
                        trait.verify(op)


def verify_module(module: ModuleOp) -> None:
    """Run the verifiers of all ops; a VerifyException is about the one that fails."""
    try:
        module.verify()
    except VerifyException:
        with about(_unverified(module)):
            raise


def _unverified(op: Operation) -> Operation:
    """Return the innermost op that does not verify, of an op that does not."""
    inner = (nested for block in _blocks(op) for nested in block.ops)
    return next((_unverified(nested) for nested in inner if not _verifies(nested)), op)


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)


def _verifies(op: Operation) -> bool:
    try:
        op.verify()
    except VerifyException:
        return False
    return True


def _check_visibility(op: Operation) -> None:
    visibility = op.get_attr_or_prop("sym_visibility")
    if isinstance(visibility, StringAttr) and visibility.data not in VISIBILITIES:
        raise VerifyException(
            f"'{op.name}' op the visibility of a symbol is '{visibility.data}'; write "
            "public, private or nested"
        )


def _check_signature(op: Operation) -> None:
    """Check that each argument and result of a function has its own dictionary."""
    if not isinstance(op, FuncOp):
        return
    types = op.function_type
    for name, attributes, values in (
        ("arg_attrs", op.arg_attrs, types.inputs),
        ("res_attrs", op.res_attrs, types.outputs),
    ):
        if attributes is not None and len(attributes) != len(values):
            raise VerifyException(
                f"'{op.name}' op {name} of @{op.sym_name.data} has {len(attributes)} "
                f"dictionaries for {len(values)} values; write one for each, {{}} if "
                "there is nothing to say"
            )


@cache
def _alone(kind: type[IRDLOperation]) -> OpDef:
    """Return the definition of an op without traits that read other ops."""
    return replace(kind.get_irdl_definition(), traits=traits_def())


def verify_definitions(module: ModuleOp) -> None:
    """
    Raise `VerifyException` for a value that is used before it is defined.

    A definition has to dominate its uses. xDSL computes which blocks dominate which
    (`xdsl.irdl.dominance`), but its verifier does not check uses.
    """
    numbers = {op: number for number, op in enumerate(module.walk())}
    for op in numbers:
        for value in op.operands:
            if not _reaches(value, op, numbers):
                with about(op):
                    _reject(op, value)


def _reject(op: Operation, value: SSAValue) -> None:
    raise VerifyException(
        f"'{op.name}' op uses %{value.name_hint or 'a value'} before it is defined; "
        "move the definition up"
    )


def _reaches(value: SSAValue, user: Operation, numbers: dict[Operation, int]) -> bool:
    """
    Whether the definition of a value dominates an op that uses it.

    `numbers` gives the position of each op in the text.
    """
    definition = value.owner
    home = definition if isinstance(definition, Block) else definition.parent
    for op, block in _around(user):
        if block is home:
            return isinstance(definition, Block) or numbers[definition] < numbers[op]
        if home is not None and block.parent is home.parent:
            region = block.parent
            return region is not None and DominanceInfo(region).dominates(home, block)
    return False


def _around(op: Operation) -> Iterator[tuple[Operation, Block]]:
    """Yield an op and the ops around it, each with the block that holds it."""
    outer: Operation | None = op
    while outer is not None and (block := outer.parent) is not None:
        yield outer, block
        outer = outer.parent_op()
