"""Random programs of named ops: values of one op are operands of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from named_ops import NAMED_OPS, NamedOp

EXTENTS = (1, 2, 3, 4, 5, 8, 13, 16, 17, 32)
LARGEST = 4000
"""Elements of one value."""
Shape = tuple[int, ...]


@dataclass
class Graph:
    """A function that grows op by op."""

    random: Random
    element: str
    arguments: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])
    """Types by name: arguments and results, counts apart."""
    made: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    dims: tuple[str, ...] = ()
    """The dimensions of the last result, and some of a fold."""

    def argument(self, type_: str) -> str:
        """Add an argument."""
        name = f"%x{len(self.arguments)}"
        self.arguments.append(f"{name}: {type_}")
        if not type_.endswith("i32>"):
            self.values[name] = type_
        return name

    def append(self, op: NamedOp) -> None:
        """Append an op; operands are values that fit, else new arguments."""
        kind, random = op.kind, self.random
        extents = self.extents(op)
        types = [
            tensor_type(
                [extents[dim] for dim in dims],
                "i32" if i in kind.LENGTHS else self.element,
            )
            for i, dims in enumerate(op.operands)
        ]
        operands: list[str] = []
        for type_ in types:
            fitting = [name for name, held in self.values.items() if held == type_]
            again = fitting and random.random() < 0.8
            operands.append(random.choice(fitting) if again else self.argument(type_))
        result = tensor_type([extents[dim] for dim in op.result], self.element)
        name = f"%y{len(self.lines)}"
        self.lines.append(
            f"  {name} = compound.{op.name} {', '.join(operands)} {op.attributes}"
            f" : ({', '.join(types)}) -> {result}"
        )
        self.values[name] = result
        self.made.append(name)
        self.dims = tuple(dict.fromkeys((*op.result, *op.operands[-1])))

    def extents(self, op: NamedOp) -> dict[str, int]:
        """Return extents that make one operand fit a value, where one can."""
        dims = dict.fromkeys(dim for names in op.operands for dim in names)
        while True:
            extents = {dim: self.random.choice(EXTENTS) for dim in dims}
            self._fit(op, extents)
            shapes = [
                [extents[d] for d in names] for names in (*op.operands, op.result)
            ]
            if all(_size(shape) <= LARGEST for shape in shapes) and is_legal(
                op, extents
            ):
                return extents

    def _fit(self, op: NamedOp, extents: dict[str, int]) -> None:
        """Give some operand the shape of a value."""
        if not self.values:
            return
        shape = shape_of(self.values[self.random.choice(list(self.values))])
        operands = [names for names in op.operands if len(names) == len(shape)]
        if operands and self.random.random() < 0.9:
            extents.update(zip(self.random.choice(operands), shape, strict=True))

    def text(self) -> str:
        """Return the module, with some of the values as results."""
        results = [self.made[-1]]
        while self.random.random() < 0.25:
            results.append(self.random.choice(self.made))
        if self.random.random() < 0.08:
            results.append(self.random.choice(list(self.values)))
        if self.random.random() < 0.08:
            self.argument(tensor_type([5, 7], self.element))
        types = ", ".join(self.values[name] for name in results)
        body = "\n".join(self.lines)
        return (
            f"func.func @main({', '.join(self.arguments)}) -> ({types}) {{\n{body}\n"
            f"  func.return {', '.join(results)} : {types}\n}}\n"
        )


def tensor_type(shape: list[int], element: str) -> str:
    """Return a tensor type."""
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def shape_of(type_: str) -> Shape:
    """Return the shape that a tensor type says."""
    inside = type_.removeprefix("tensor<").removesuffix(">")
    return tuple(int(extent) for extent in inside.split("x")[:-1])


def _size(shape: list[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def is_legal(op: NamedOp, extents: dict[str, int]) -> bool:
    """Whether the ops of that kind take these extents: masks need as many keys."""
    if "HG" in extents and extents["HG"] % extents["H"]:
        return False
    return op.attributes != "causal" or extents["M"] <= extents["N"]


def graph(random: Random) -> tuple[str, tuple[str, ...]]:
    """Return a module of one to four named ops, and names of dimensions."""
    made = Graph(random, random.choice(("f32", "f16", "bf16")))
    for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
        heavy = random.random() < 0.2
        made.append(
            random.choice([op for op in NAMED_OPS if heavy or op.name.startswith("g")])
        )
    return made.text(), made.dims
