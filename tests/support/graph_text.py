"""Writes functions of elementary ops, for tests and for `samples/blocks`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Dims = Sequence[str]
"""Names of dimensions, one letter each."""

NOTHING: Mapping[str, str] = {}

MADE = {"index": "i32", "map ge": "i1"}
"""The element types of results that are no floats."""


@dataclass(frozen=True)
class Node:
    """One op: `text` is its name with its properties, such as `map exp`."""

    name: str
    text: str
    inputs: tuple[str, ...]
    dims: tuple[str, ...]


class Program:
    """
    One function of elementary ops; values are called as their names say.

    Arguments and results are of type `element`; all is computed in `accumulator`, and
    operands of products are rounded to `element` again. Ranks share the arguments and
    results named in `sharded`, each along the dimension that it says.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        element: str = "f32",
        accumulator: str = "",
        sharded: Mapping[str, str] = NOTHING,
    ):
        self.sizes, self._element = sizes, element
        self._accumulator = accumulator or element
        self._sharded = dict(sharded)
        self.arguments: dict[str, tuple[str, ...]] = {}
        self.nodes: list[Node] = []
        self._dims: dict[str, tuple[str, ...]] = {}
        self._types: dict[str, str] = {}
        """The element types of values."""
        self._casts: dict[tuple[str, str], str] = {}
        self._aliases: dict[str, str] = {}
        self._lines: list[str] = []

    @property
    def elements(self) -> tuple[str, str]:
        """The types of what is stored and of what is computed."""
        return self._element, self._accumulator

    @property
    def values(self) -> Collection[str]:
        """The names of all values."""
        return self._dims.keys()

    def dims(self, value: str) -> tuple[str, ...]:
        """Return the dimensions of a value."""
        return self._dims[value]

    def size(self, dim: str) -> int:
        """Return the extent of a dimension."""
        return self.sizes[dim]

    def _type(self, value: str) -> str:
        """Return the type of a value: an alias, written once above the function."""
        dims, element = self._dims[value], self._types[value]
        alias = f"!{''.join(dims) or 'number'}_{element}"
        shape = "".join(f"{self.sizes[dim]}x" for dim in dims)
        names = ", ".join(dims)
        self._aliases[alias] = f"tensor<{shape}{element}, #compound.dims<{names}>>"
        return alias

    def _shard(self, value: str) -> str:
        """Return the attribute that says along which dimension ranks share a value."""
        if value not in self._sharded:
            return ""
        return f' {{collective.shard = {{{self._sharded[value]} = ["rank"]}}}}'

    def argument(self, name: str, dims: Dims) -> str:
        """Add an argument of the function."""
        self.arguments[name] = self._dims[name] = tuple(dims)
        self._types[name] = self._element
        return name

    def _of(self, element: str, value: str) -> str:
        """Return a value as numbers of a type, with a cast if that is another one."""
        if self._types[value] == element:
            return value
        if (value, element) not in self._casts:
            name = f"{value}_{element}"
            self._casts[value, element] = name
            self._add(name, "cast", (value,), self._dims[value], element)
        return self._casts[value, element]

    def _add(
        self,
        name: str,
        text: str,
        inputs: tuple[str, ...],
        dims: Dims,
        element: str,
    ) -> None:
        self._dims[name], self._types[name] = tuple(dims), element
        types = ", ".join(map(self._type, inputs))
        ins = " " + ", ".join(f"%{value}" for value in inputs) if inputs else ""
        arrow = f"{types} -> " if inputs else ""
        line = f"  %{name} = compound.{text}{ins} : {arrow}{self._type(name)}"
        self._lines.append(line)

    def add(self, name: str, text: str, inputs: Sequence[str], dims: Dims) -> str:
        """Add an op; its operands are cast as they have to be."""
        self.nodes.append(Node(name, text, tuple(inputs), tuple(dims)))
        kind = text.split()[0]
        element = {"contract": self._element}.get(kind, self._accumulator)
        made = self._accumulator
        if kind == "rename":
            element = made = self._types[inputs[0]]
        made = MADE.get(text, made)
        operands = tuple(
            value if self._types[value] in MADE.values() else self._of(element, value)
            for value in inputs
        )
        self._add(name, text, operands, dims, made)
        return name

    def map(self, name: str, kind: str, *inputs: str) -> str:
        """Compute elementwise; the result has the dimensions of all, largest first."""
        largest = sorted(inputs, key=lambda value: -len(self._dims[value]))
        dims = dict.fromkeys(dim for value in largest for dim in self._dims[value])
        return self.add(name, f"map {kind}", inputs, tuple(dims))

    def reduce(self, name: str, kind: str, value: str, dims: Dims) -> str:
        """Reduce over dimensions."""
        kept = tuple(own for own in self._dims[value] if own not in dims)
        return self.add(name, f"reduce {kind}", (value,), kept)

    def contract(self, name: str, lhs: str, rhs: str, dims: Dims) -> str:
        """Multiply two values and sum over all dimensions but `dims`."""
        return self.add(name, "contract", (lhs, rhs), dims)

    def rename(self, name: str, value: str, dims: Dims) -> str:
        """View a value under other names."""
        return self.add(name, "rename", (value,), dims)

    def fill(self, name: str, number: float) -> str:
        """Add a number."""
        mantissa, e, exponent = repr(float(number)).partition("e")
        point = "" if "." in mantissa else ".0"
        return self.add(name, f"fill {mantissa}{point}{e}{exponent}", (), "")

    def index(self, name: str, dim: str) -> str:
        """Add the positions along a dimension."""
        return self.add(name, "index", (), dim)

    def rounded(self, value: str) -> str:
        """Return a value as it is stored between the halves of a block."""
        return self._of(self._element, value)

    def returning(self, *values: str, function: str = "main") -> str:
        """Return the text of the function, which returns some values."""
        results = [self.rounded(value) for value in values]
        types = list(map(self._type, results))
        taken = ", ".join(
            f"%{name}: {self._type(name)}{self._shard(name)}" for name in self.arguments
        )
        given = ", ".join(
            f"{type_}{self._shard(value)}"
            for type_, value in zip(types, values, strict=True)
        )
        names = ", ".join(f"%{value}" for value in results)
        aliases = (f"{alias} = {type_}" for alias, type_ in self._aliases.items())
        head = f"func.func @{function}({taken}) -> ({given}) {{"
        end = f"  func.return {names} : {', '.join(types)}"
        return "\n".join([*aliases, head, *self._lines, end, "}"])
