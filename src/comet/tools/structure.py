"""Checks of IR that has just been read, before its ops verify what is around them."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException


def check_structure(module: ModuleOp) -> None:
    """
    Check that every op has the operands, attributes and parents of its definition.

    `Operation.verify` starts with the innermost ops, and their own checks rely on those
    around them: a `func.return` on the type of its function. This starts with the
    outermost. Raises VerifyException as `Operation.verify` does.
    """
    for op in module.walk():
        if isinstance(op, IRDLOperation):
            try:
                op.get_irdl_definition().verify(op)
            except VerifyException as error:
                op.emit_error(f"Operation does not verify: {error}", error)
