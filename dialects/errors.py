"""Errors that carry the operation that they are about; tools print its location."""

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException


class OpError(PassFailedException):
    """A mistake of the user in `op`: one sentence with the reason and the way out."""

    def __init__(self, op: Operation | None, sentence: str):
        super().__init__(sentence)
        self.op = op


@contextmanager
def about(op: Operation) -> Generator[None]:
    """Run the body; an error in it is about `op` unless it carries an op already."""
    try:
        yield
    except Exception as error:
        if op_of(error) is None:
            vars(error)["op"] = op
        raise


def op_of(error: BaseException) -> Operation | None:
    """Return the operation that an error is about, if it is known."""
    return getattr(error, "op", None)


def called(value: SSAValue) -> str:
    """Return the name of a value in a message, if it has one."""
    return f"%{value.name_hint}" if value.name_hint else "a value without a name"
