"""The ops around an op: traits for them, and a way to find one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

OpT = TypeVar("OpT", bound=Operation)


def enclosing(op: Operation, kind: type[OpT]) -> OpT | None:
    """Return the innermost op of a class around `op`, None if there is none."""
    above = op.parent_op()
    while above is not None and not isinstance(above, kind):
        above = above.parent_op()
    return above


@dataclass(frozen=True)
class HasParentNamed(OpTrait):
    """
    The parent is an op with one of these names; like `HasParent` for classes.

    For parents whose classes are defined after those of their children.
    """

    names: tuple[str, ...]

    def verify(self, op: Operation) -> None:
        """Raise `VerifyException` for another parent; an op may have none."""
        parent = op.parent_op()
        if parent is None or parent.name in self.names:
            return
        names = ", ".join(f"'{name}'" for name in self.names)
        expected = names if len(self.names) == 1 else f"to be one of {names}"
        raise VerifyException(f"'{op.name}' expects parent op {expected}")
