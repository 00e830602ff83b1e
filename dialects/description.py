"""
A description of ops that is equal for equal ops of different functions.

What a structural hash of ops is in MLIR (`OperationEquivalence`): all but names of
values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable

from xdsl.ir import Operation, SSAValue


class Description:
    """
    Numbers values and ops as they are seen, and describes them in this order.

    Of ops outside of what is described, whose results are read, those that `follows`
    accepts are described, too; of others only the types of these results are. The
    attributes in `without` are not.
    """

    def __init__(
        self,
        follows: Callable[[Operation], bool] = lambda op: False,
        without: Collection[str] = (),
    ) -> None:
        self._follows, self._without = follows, without
        self._numbers: dict[Operation | SSAValue, int] = {}
        self._described: list[Hashable] = []

    @property
    def so_far(self) -> Hashable:
        """All that was described."""
        return tuple(self._described)

    def operations(self, ops: Iterable[Operation]) -> tuple[int, ...]:
        """Describe ops; return their numbers."""
        return tuple(map(self._operation, ops))

    def values(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        """Describe values; return their numbers."""
        return tuple(map(self._value, values))

    def _operation(self, op: Operation) -> int:
        if op not in self._numbers:
            read = self.values(op.operands)
            self._number(op)
            blocks = [block for region in op.regions for block in region.blocks]
            for value in (
                *op.results,
                *(arg for block in blocks for arg in block.args),
            ):
                self._number_value(value)
            inside = tuple(self.operations(block.ops) for block in blocks)
            properties = frozenset(op.properties.items())
            attributes = frozenset(
                each for each in op.attributes.items() if each[0] not in self._without
            )
            self._described.append((op.name, read, properties, attributes, inside))
        return self._numbers[op]

    def _value(self, value: SSAValue) -> int:
        if value not in self._numbers:
            owner = value.owner
            if isinstance(owner, Operation) and self._follows(owner):
                self._operation(owner)
            else:
                self._number_value(value)
        return self._numbers[value]

    def _number_value(self, value: SSAValue) -> None:
        self._number(value)
        self._described.append(value.type)

    def _number(self, what: Operation | SSAValue) -> None:
        self._numbers[what] = len(self._numbers)
