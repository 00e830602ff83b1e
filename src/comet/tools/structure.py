"""Checks of IR that has just been read, before its ops verify what is around them."""

from dataclasses import replace
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import IRDLOperation, OpDef, traits_def
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException


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
                for trait in op.get_traits_of_type(HasParent):
                    trait.verify(op)
            except VerifyException as error:
                op.emit_error(f"Operation does not verify: {error}", error)


@cache
def _alone(kind: type[IRDLOperation]) -> OpDef:
    """Return the definition of an op without the traits, which look at other ops."""
    return replace(kind.get_irdl_definition(), traits=traits_def())
