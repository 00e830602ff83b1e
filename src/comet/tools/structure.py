"""Checks of IR that has just been read, before its ops verify what is around them."""

from dataclasses import replace
from functools import cache

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OpDef, traits_def
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

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
                for trait in op.get_traits_of_type(HasParent):
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
