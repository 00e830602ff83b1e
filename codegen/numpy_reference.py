"""Prints a function of elementary `compound` operations as float64 numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from comet.codegen.python_text import INDENT, Variables, tuple_of, wrapped
from comet.dialects import compound
from comet.dialects.blocks import yielded_by
from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.dims import bits_of, extents_of, names_of
from comet.dialects.errors import OpError

MAP_TEXT: Mapping[MapKind, str] = {
    MapKind.ADD: "{} + {}",
    MapKind.SUB: "{} - {}",
    MapKind.MULT: "{} * {}",
    MapKind.DIV: "{} / {}",
    MapKind.MAX: "np.maximum({}, {})",
    MapKind.MIN: "np.minimum({}, {})",
    MapKind.EXP: "np.exp({})",
    MapKind.EXP2: "np.exp2({})",
    MapKind.LOG: "np.log({})",
    MapKind.SQRT: "np.sqrt({})",
    MapKind.RSQRT: "1 / np.sqrt({})",
    MapKind.NEG: "-{}",
    MapKind.TANH: "np.tanh({})",
    MapKind.ERF: "np.vectorize(math.erf)({})",
    MapKind.SIN: "np.sin({})",
    MapKind.COS: "np.cos({})",
    MapKind.COPY: "+{}",
    MapKind.GE: "1.0 * ({} >= {})",
    MapKind.GT: "1.0 * ({} > {})",
    MapKind.EQ: "1.0 * ({} == {})",
    MapKind.SELECT: "np.where({}, {}, {})",
    MapKind.RANDOM: "philox(np.asarray({}), np.asarray({}))",
}
"""
Operands are variables or literals, possibly indexed: no parentheses are needed.

True is 1 and false is 0, as in everything else that a reference computes.
"""

REDUCE_TEXT: Mapping[ReduceKind, str] = {
    ReduceKind.ADD: "sum",
    ReduceKind.MAX: "max",
}

IMPORTED = ("float", "main", "math", "np", "philox", "tl", "torch", "triton")


class ReferencePrinter:
    """Prints one function; every value becomes a variable of float64 numpy."""

    def __init__(self, function: func.FuncOp):
        self._function = function
        self._variables = Variables(IMPORTED)
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """
        Return the lines of the function.

        Raises `DiagnosticException` for operations that are not elementary.
        """
        arguments = [
            self._variables.bind(arg) for arg in self._function.body.block.args
        ]
        parameters = ", ".join(f"{name}: np.ndarray" for name in arguments)
        name = self._function.sym_name.data
        results = len(self._function.function_type.outputs.data)
        returned = "np.ndarray" if results == 1 else "tuple[np.ndarray, ...]"
        self._lines = wrapped(f"def {name}({parameters}) -> {returned}:", "")
        self._lines.append(f'{INDENT}"""What the program means, in float64 numpy."""')
        self._block(self._function.body.block)
        return self._lines

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, func.ReturnOp):
                names = [self._variables[value] for value in op.arguments]
                text = names[0] if len(names) == 1 else tuple_of(names)
                self._lines.append(f"{INDENT}return {text}")
            elif isinstance(op, compound.FoldOp):
                self._fold(op)
            elif isinstance(op, compound.ScatterAddOp):
                self._scatter_add(op)
            elif not isinstance(op, compound.YieldOp):
                self._assign(op)

    def _assign(self, op: Operation) -> None:
        text = self._expression(op)
        if isinstance(op, compound.CastOp | compound.RenameOp) and not _computes(op):
            self._variables[op.result] = text
            return
        name = self._variables.bind(op.results[0])
        self._lines += wrapped(f"{name} = {text}", INDENT)

    def _scatter_add(self, op: compound.ScatterAddOp) -> None:
        values, ids = (self._variables[value] for value in op.operands)
        name, extents = self._variables.bind(op.result), extents_of(op.result)
        axis = [*extents].index(op.into)
        index = [*(":" for _ in range(axis)), _as_integers(ids, op.ids)]
        self._lines.append(f"{INDENT}{name} = np.zeros({tuple(extents.values())})")
        where = f"np.s_[{', '.join(index)}]"
        self._lines += wrapped(f"np.add.at({name}, {where}, {values})", INDENT)

    def _fold(self, op: compound.FoldOp) -> None:
        """One step over the whole dimension: any chunks give the same value."""
        values = (*op.ins, *op.init)
        for argument, value in zip(op.step.block.args, values, strict=True):
            self._variables[argument] = self._variables[value]
        self._block(op.step.block)
        for result, value in zip(op.outs, yielded_by(op.step.block), strict=True):
            self._variables[result] = self._variables[value]

    def _expression(self, op: Operation) -> str:
        match op:
            case compound.ContractOp():
                return self._contract(op)
            case compound.ReduceOp():
                axes = tuple(names_of(op.input).index(name) for name in op.reduced)
                axis = axes[0] if len(axes) == 1 else axes
                operand = self._variables[op.input]
                left = tuple(dim for dim in names_of(op.input) if dim not in op.reduced)
                text = f"{operand}.{REDUCE_TEXT[op.kind.data]}(axis={axis})"
                return _transposed(text, left, names_of(op.result))
            case compound.MapOp():
                names = names_of(op.result)
                operands = [self._broadcast(value, names) for value in op.inputs]
                return MAP_TEXT[op.kind.data].format(*operands)
            case compound.RenameOp() if _reshapes(op):
                shape = ", ".join(map(str, extents_of(op.result).values()))
                return f"{self._variables[op.input]}.reshape({shape})"
            case compound.CastOp() if op.truncates:
                return f"np.trunc({self._variables[op.input]})"
            case compound.CastOp() | compound.RenameOp():
                return self._variables[op.input]
            case compound.PadOp():
                return _padded(op, self._variables[op.input])
            case compound.SliceOp():
                return f"{self._variables[op.input]}{_slice_index(op)}"
            case compound.ConcatOp():
                axis = names_of(op.result).index(op.dim.data)
                operands = tuple_of([self._variables[value] for value in op.inputs])
                return f"np.concatenate({operands}, axis={axis})"
            case compound.GatherOp():
                table, ids = (self._variables[value] for value in op.operands)
                axis = names_of(op.table).index(op.along)
                return f"np.take({table}, {_as_integers(ids, op.ids)}, axis={axis})"
            case compound.FillOp():
                return _filled(op)
            case compound.IndexOp():
                (extent,) = extents_of(op.result).values()
                return f"np.arange({float(extent)})"
            case compound.ExtentOp():
                return repr(float(extents_of(op.input)[op.dim.data]))
            case _:
                raise OpError(
                    op,
                    f"{op.name} in @{self._function.sym_name.data} is not elementary; "
                    "the reference is written by decompose",
                )

    def _contract(self, op: compound.ContractOp) -> str:
        lhs, rhs, out = (names_of(v) for v in (op.lhs, op.rhs, op.result))
        operands = f"{self._variables[op.lhs]}", f"{self._variables[op.rhs]}"
        if (len(lhs), len(rhs)) == (2, 2) and lhs[1] == rhs[0]:
            if out == (lhs[0], rhs[1]):
                return f"{operands[0]} @ {operands[1]}"
        letters = dict(zip(dict.fromkeys((*lhs, *rhs)), ascii_lowercase, strict=False))
        subscripts = [
            "".join(letters[name] for name in dims) for dims in (lhs, rhs, out)
        ]
        return (
            f'np.einsum("{subscripts[0]},{subscripts[1]}->{subscripts[2]}", '
            f"{', '.join(operands)})"
        )

    def _broadcast(self, value: SSAValue, names: tuple[str, ...]) -> str:
        """Insert axes into the operand so that it broadcasts to the result, by name."""
        text, dims = self._variables[value], names_of(value)
        if not dims or dims == names:
            return text
        shared = tuple(name for name in names if name in dims)
        text = _transposed(text, dims, shared)
        if len(shared) == len(names):
            return text
        index = ", ".join(":" if name in dims else "None" for name in names)
        return f"{text}[{index}]"


def _transposed(text: str, dims: Sequence[str], names: Sequence[str]) -> str:
    """Return an array with the axes `dims`, in the order of `names`."""
    if tuple(dims) == tuple(names):
        return text
    return f"{text}.transpose({', '.join(str(dims.index(name)) for name in names)})"


def _computes(op: compound.CastOp | compound.RenameOp) -> bool:
    """Whether the result of `op` is another array than its operand."""
    return _reshapes(op) or (isinstance(op, compound.CastOp) and op.truncates)


def _reshapes(op: Operation) -> bool:
    """Whether `op` splits or merges axes; other renames are the same array."""
    return isinstance(op, compound.RenameOp) and op.reshapes


def _padded(op: compound.PadOp, operand: str) -> str:
    """Return an expression of the true positions, and padding up to the extents."""
    extents = extents_of(op.result)
    true = extents | op.extents
    widths = [(0, extents[dim] - true[dim]) for dim in extents]
    number = _number(op.number)
    return f"np.pad({operand}{_first(true)}, {widths}, constant_values={number})"


def _first(extents: Mapping[str, int]) -> str:
    """Return the index of the first positions along every axis."""
    return f"[{', '.join(f':{extent}' for extent in extents.values())}]"


def _slice_index(op: compound.SliceOp) -> str:
    """Return the index of the positions that a slice takes along every axis."""
    firsts = op.offsets
    ranges = [
        f"{firsts.get(dim) or ''}:{firsts.get(dim, 0) + extent}"
        for dim, extent in extents_of(op.result).items()
    ]
    return f"[{', '.join(ranges)}]"


def _as_integers(text: str, ids: SSAValue) -> str:
    """Return ids, which are float64 as everything else, as integers."""
    return f"np.asarray({text}, np.int{bits_of(ids)})"


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _filled(op: compound.FillOp) -> str:
    number = _number(op.value.value.data)
    extents = tuple(extents_of(op.result).values())
    return f"np.full({extents}, {number})" if extents else number


def _operands_through_casts(value: SSAValue) -> SSAValue:
    """Return the value below casts and renames; of gathered rows, the table."""
    while True:
        match value.owner:
            case compound.CastOp() | compound.RenameOp() as op:
                value = op.input
            case compound.GatherOp() as op:
                value = op.table
            case _:
                return value


def summed_terms(function: func.FuncOp) -> dict[SSAValue, int]:
    """
    Return how many products are summed over each operand of a contraction.

    Keys are values of the function below casts and renames; the count is in elements.
    """
    terms: dict[SSAValue, int] = {}
    for op in function.walk():
        if isinstance(op, compound.ContractOp):
            extents = extents_of(op.lhs)
            count = math.prod(extents[name] for name in op.contracted)
            for operand in (op.lhs, op.rhs):
                source = _operands_through_casts(operand)
                terms[source] = max(count, terms.get(source, 1))
    return terms
