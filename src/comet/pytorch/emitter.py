"""The values of a traced graph, and how they become ops on named dimensions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    names_of,
    tensor,
)
from comet.dialects.compound.map import MapKind, MapOp
from comet.dialects.compound.rename import RenameOp
from comet.pytorch.dims import Axis, Dim, elements, leaves

LETTERS = "MNKDHBEFGTLPQRSUVWXYZCAJO"
"""The names of the first dimensions."""
RANK = "rank"
"""The name of the dimension over ranks, and of the axis of the mesh."""
NO_COLUMN = IntAttr(0)
"""The column of a location that names a line alone."""


def _names() -> Iterator[str]:
    """Yield names of dimensions, all different."""
    yield from LETTERS
    yield from (f"D{number}" for number in count(1))


@dataclass(eq=False)
class Tensor:
    """A value of the graph."""

    dims: Axis
    """Its dimensions, in the order of memory."""
    element: Element
    op: Op | None = None
    """What computes it, None for an argument."""
    name: str = ""
    """The name of the node of torch that it comes from, for readers."""
    call: tuple[str, int] | None = None
    """File and line of the model that call this node, if torch knows them."""

    def put_in_order(self, dims: Axis) -> None:
        """Have it in memory in the order of `dims`, if its op can choose."""
        if self.op is not None and self.op.has_order(dims):
            self.dims = dims


@dataclass(frozen=True)
class View:
    """
    A torch tensor: the axes of a value.

    The value is the same along dimensions that only the axes have (`expand`).
    """

    tensor: Tensor
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent (elements) of each axis."""
        return tuple(map(elements, self.axes))

    @property
    def dims(self) -> Axis:
        """The dimensions of all axes."""
        return leaves(dim for axis in self.axes for dim in axis)

    @property
    def expanded(self) -> Axis:
        """The dimensions along which the value is the same."""
        stored = leaves(self.tensor.dims)
        return tuple(dim for dim in self.dims if dim not in stored)


class Op(ABC):
    """An op of the graph."""

    @abstractmethod
    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        """Emit the op that computes `result`, and return its value."""

    def has_order(self, dims: Axis) -> bool:
        """Return whether the result can have its dimensions in this order."""
        return False


class Emitter:
    """
    The ops in a block, and the values that they compute.

    The dimension `ranks` has the name RANK, and `number` elements: one in what a rank
    does, and in what all of them compute as many as there are.
    """

    def __init__(
        self, ranks: Dim, number: int = 1, names: Mapping[Dim, str] | None = None
    ):
        """Begin with no ops; without `names` all dimensions get different ones."""
        self.block = Block()
        self.of_one_rank = number == 1
        """Whether the values of other ranks are elsewhere."""
        self._values: dict[Tensor, SSAValue] = {}
        self._extents = {ranks: number}
        self.names: dict[Dim, str] = {ranks: RANK, **(names or {})}
        taken = {*self.names.values()}
        self._new_names = (name for name in _names() if name not in taken)
        self._unnamed = count()
        self._call: tuple[str, int] | None = None
        """Where the model calls what is emitted now."""

    def add(self, op: Operation) -> SSAValue:
        """Add an op at the end, with its line of the model, and return its result."""
        if self._call is not None:
            file, line = self._call
            op.location = FileLineColLoc(StringAttr(file), IntAttr(line), NO_COLUMN)
        self.block.add_op(op)
        return op.results[0]

    def define(self, result: Tensor, value: SSAValue) -> None:
        """Note the value of an argument."""
        value.name_hint = result.name
        self._values[result] = value

    def value(self, of: Tensor) -> SSAValue:
        """Return the value of a tensor, which is computed if it is not yet."""
        if of not in self._values:
            assert of.op is not None, "arguments are defined"
            outer, self._call = self._call, of.call or self._call
            value = of.op.emit(self, of)
            self._call = outer
            value.name_hint = of.name or value.name_hint
            self._values[of] = value
        return self._values[of]

    def unnamed(self) -> str:
        """Return a new name for an axis between two ops."""
        return f"axis{next(self._unnamed)}"

    def named(self, dims: Iterable[Dim]) -> dict[str, int]:
        """Return names and extents of dimensions, in order."""
        found = leaves(dims)
        for dim in found:
            if dim not in self.names:
                self.names[dim] = next(self._new_names)
        return {self.names[dim]: self._extents.get(dim, dim.extent) for dim in found}

    def type(self, of: Tensor) -> TensorType[Element]:
        """Return the type of a tensor, with its dimensions in their order."""
        return tensor(self.named(of.dims), of.element)

    def ordered(self, value: SSAValue, order: Sequence[str]) -> SSAValue:
        """Return a value with its axes in another order in memory."""
        if names_of(value) == tuple(order):
            return value
        extents = extents_of(value)
        type_ = tensor({name: extents[name] for name in order}, element_type_of(value))
        return self.add(MapOp(MapKind.COPY, [value], type_))

    def renamed(self, value: SSAValue, names: Mapping[str, str]) -> SSAValue:
        """Return a value with other names of axes."""
        extents = {names.get(n, n): extent for n, extent in extents_of(value).items()}
        if tuple(extents) == names_of(value):
            return value
        return self.add(RenameOp(value, tensor(extents, element_type_of(value))))

    def merge(self, value: SSAValue, dims: Iterable[Dim]) -> tuple[SSAValue, str]:
        """
        Return a value in which the dimensions are one, and the name of that.

        Of no dimensions it is one of a single element.
        """
        if not (joined := self.named(dims)):
            last, one = names_of(value)[-1], self.unnamed()
            parts = {last: extents_of(value)[last], one: 1}
            return self._view(value, (last,), parts, split=last), one
        first, *others = joined
        into = self.unnamed() if others else first
        names = names_of(value)
        at = names.index(first)
        if names[at + 1 : at + 1 + len(others)] != tuple(others):
            before = [name for name in names[:at] if name not in others]
            after = [name for name in names[at + 1 :] if name not in others]
            value = self.ordered(value, [*before, first, *others, *after])
        for other in others:
            extents = extents_of(value)
            pair = {first: extents[first] * extents[other]}
            value = self._view(value, (first, other), pair, merge=first)
        return self._view(value, (first,), {into: prod(joined.values())}), into

    def split(self, value: SSAValue, name: str, dims: Iterable[Dim]) -> SSAValue:
        """Return a value in which the dimension `name` is several."""
        *outer, last = self.named(dims).items()
        for part, extent in outer:
            inner = self.unnamed()
            parts = {part: extent, inner: extents_of(value)[name] // extent}
            value = self._view(value, (name,), parts, split=name)
            name = inner
        return self._view(value, (name,), dict([last]))

    def _view(
        self,
        value: SSAValue,
        old: tuple[str, ...],
        new: Mapping[str, int],
        *,
        split: str | None = None,
        merge: str | None = None,
    ) -> SSAValue:
        """Return a value with the axes `new` in place of `old`, which are adjacent."""
        extents: dict[str, int] = {}
        for name, extent in extents_of(value).items():
            extents |= new if name == old[0] else {name: extent}
        for name in old[1:]:
            del extents[name]
        if tuple(extents) == names_of(value):
            return value
        type_ = tensor(extents, element_type_of(value))
        return self.add(RenameOp(value, type_, split, merge))
