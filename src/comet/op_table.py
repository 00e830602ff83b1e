"""A dispatch table from classes of operations to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from xdsl.ir import Operation

OpT = TypeVar("OpT", bound=Operation)
ScopeT = TypeVar("ScopeT")
ResultT = TypeVar("ResultT")

Handler: TypeAlias = Callable[[OpT, ScopeT], ResultT]


class OpTable(Generic[ScopeT, ResultT]):
    """Functions of an operation and a scope, one for each class of operations."""

    def __init__(self) -> None:
        self._handlers: dict[type[Operation], Callable[[Operation, ScopeT], ResultT]]
        self._handlers = {}

    def enter(
        self, op_type: type[OpT]
    ) -> Callable[[Handler[OpT, ScopeT, ResultT]], Handler[OpT, ScopeT, ResultT]]:
        """Decorate the function for operations of one class."""

        def enter(
            function: Handler[OpT, ScopeT, ResultT],
        ) -> Handler[OpT, ScopeT, ResultT]:
            def checked(op: Operation, scope: ScopeT) -> ResultT:
                assert isinstance(op, op_type)
                return function(op, scope)

            self._handlers[op_type] = checked
            return function

        return enter

    def find(self, op: Operation) -> Callable[[Operation, ScopeT], ResultT] | None:
        """Return the function for an operation, None if there is none."""
        return self._handlers.get(type(op))
