"""Functions of ops on named dimensions that grow op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

LARGEST = 6000
"""Elements of one value."""
INTEGERS = ("i1", "i32", "i64")
"""Values of these are conditions and positions, which few ops take."""


@dataclass(frozen=True)
class Value:
    """A tensor with named dimensions."""

    name: str
    extents: Mapping[str, int]
    element: str

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return tuple(self.extents)

    @property
    def type(self) -> str:
        """The type of the tensor."""
        shape = "".join(f"{extent}x" for extent in self.extents.values())
        names = ", ".join(self.extents)
        return f"tensor<{shape}{self.element}, #compound.dims<{names}>>"


@dataclass
class Program:
    """A function that grows op by op."""

    random: Random
    extents: dict[str, int]
    """The extents of dimensions; values may have a part of one, or more."""
    arguments: list[Value] = field(default_factory=list[Value])
    values: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    shards: dict[str, str] = field(default_factory=dict[str, str])
    """The shardings of arguments and results, by name."""

    def value(self, name: str, dims: Sequence[str], element: str) -> Value:
        """Return a tensor of whole dimensions."""
        return Value(name, {dim: self.extents[dim] for dim in dims}, element)

    def add(
        self,
        op: str,
        inputs: Sequence[Value],
        dims: Sequence[str] | Mapping[str, int],
        element: str,
    ) -> Value:
        """Append `op` on the inputs; return its result, of their extents if any."""
        known = dict(self.extents)
        for value in inputs:
            known |= value.extents
        if not isinstance(dims, Mapping):
            dims = {dim: known[dim] for dim in dims}
        result = Value(f"%v{len(self.lines)}", dims, element)
        names = ", ".join(value.name for value in inputs)
        types = ", ".join(value.type for value in inputs)
        arrow = " -> " if inputs else ""
        body = op.replace("$", names)
        types = f"{types}{arrow}{result.type}"
        self.lines.append(f"  {result.name} = compound.{body} : {types}")
        if element not in INTEGERS:
            self.values.append(result)
        return result

    def map(self, kind: str, *inputs: Value) -> Value:
        """Append a map; the result has the dimensions of all inputs, in any order."""
        if len({value.element for value in inputs}) > 1:
            inputs = tuple(self.cast(value, "f32") for value in inputs)
        dims = list(dict.fromkeys(dim for value in inputs for dim in value.dims))
        if self.random.random() < 0.2:
            self.random.shuffle(dims)
        if self.size(dims) > LARGEST or not fit(*inputs):
            return inputs[0]
        return self.add(f"map {kind} $", inputs, dims, inputs[0].element)

    def cast(self, value: Value, element: str) -> Value:
        """Append a cast, unless the element type is that one."""
        if value.element == element:
            return value
        return self.add("cast $", [value], value.dims, element)

    def reduce(self, kind: str, value: Value, dropped: Sequence[str]) -> Value:
        """Append a reduction of these dimensions."""
        kept = [dim for dim in value.dims if dim not in dropped]
        return self.add(f"reduce {kind} $", [value], kept, value.element)

    def size(self, dims: Sequence[str]) -> int:
        """Return the number of elements of a tensor."""
        count = 1
        for dim in dims:
            count *= self.extents[dim]
        return count

    def any(self) -> Value:
        """Return a value, mostly a late one."""
        late = self.values[-3:]
        return self.random.choice(late if self.random.random() < 0.6 else self.values)

    def text(self, results: Sequence[Value], reference: bool) -> str:
        """Return the module: the function, and maybe a copy of it as its reference."""
        types = ", ".join(value.type for value in results)
        names = ", ".join(value.name for value in results)
        body = "\n".join([*self.lines, f"  func.return {names} : {types}", "}"])
        main = f"func.func @main{self._head(results, self.shards)} {{\n{body}\n"
        if not reference:
            return main
        return (
            f"{main}func.func private @main__reference{self._head(results, {})}\n"
            f"    attributes {{comet.reference}} {{\n{body}\n"
        )

    def _head(self, results: Sequence[Value], shards: Mapping[str, str]) -> str:
        """Return arguments and results, with the dimension that ranks share of each."""

        def shared(value: Value) -> str:
            if value.name not in shards:
                return value.type
            return f"{value.type} {{collective.shard = {shards[value.name]}}}"

        arguments = ", ".join(f"{each.name}: {shared(each)}" for each in self.arguments)
        return f"({arguments}) -> ({', '.join(map(shared, results))})"

    def share(self, results: Sequence[Value]) -> None:
        """Say for arguments, and for all results, what ranks share."""
        for value in (*self.arguments, *results):
            dims = [f'{dim} = ["rank"]' for dim in value.dims]
            self.shards[value.name] = f"{{{self.random.choice(['', *dims, *dims])}}}"


Step: TypeAlias = Callable[[Program], None]
"""Appends what it wants to a program."""


def fit(*values: Value) -> bool:
    """Whether values have equal extents along their common dimensions."""
    known: dict[str, int] = {}
    pairs = [pair for value in values for pair in value.extents.items()]
    return all(known.setdefault(dim, extent) == extent for dim, extent in pairs)
