"""
The interpreter of functions and blocks; `evaluate` dispatches on the op.

Each dialect has a module that registers its ops by `@evaluate.register`; so do
extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator, SymbolTable
from xdsl.utils.exceptions import InterpretationError, VerifyException

from comet.dialects.compound.dims import DimsAttr
from comet.dialects.errors import about
from comet.interpreter.chunking import FoldTree, whole
from comet.interpreter.tensor import Array, Tensor

Values = tuple[Tensor, ...]


@dataclass(frozen=True)
class Interpreter:
    """Runs the functions of a module; each call has its own environment."""

    module: ModuleOp
    chunks: Callable[[int], FoldTree] = whole
    """Returns the chunks of a folded dimension, by its extent."""
    values: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])
    """The environment: the values of the SSA values of the current call."""

    def call(self, name: str, args: Sequence[Tensor]) -> Values:
        """Call a function of the module in a new environment."""
        function = SymbolTable.lookup_symbol(self.module, name)
        if not isinstance(function, func.FuncOp) or function.is_declaration:
            raise InterpretationError(f"the module has no function @{name} with a body")
        if len(function.body.blocks) > 1:
            raise InterpretationError(
                f"@{name} branches, which has no meaning in the interpreter"
            )
        return replace(self, values={}).run_block(function.body.block, args)

    def run_block(self, block: Block, args: Sequence[Tensor]) -> Values:
        """Run the ops of `block`, and return the operands of its terminator."""
        self.values.update(zip(block.args, args, strict=True))
        for op in block.ops:
            operands = tuple(self.values[operand] for operand in op.operands)
            if op.has_trait(IsTerminator):
                return operands
            with about(op):
                results = evaluate(op, self, operands)
            for result, value in zip(op.results, results, strict=True):
                self.values[result] = self.kept(result, value)
        return ()

    def kept(self, result: SSAValue, value: Tensor) -> Tensor:
        """Return the value to store for a result; subclasses may change it."""
        return value


@singledispatch
def evaluate(op: Operation, machine: Interpreter, args: Values) -> Values:
    """Return the results of `op` for the values of its operands."""
    raise InterpretationError(f"'{op.name}' op has no meaning in the interpreter")


@evaluate.register
def _(op: func.CallOp, machine: Interpreter, args: Values) -> Values:
    return machine.call(op.callee.string_value(), args)


def dims_of(type_: Attribute) -> tuple[str, ...]:
    """Return the dimension names of a tensor type, `0, 1, ..` if it names none."""
    assert isinstance(type_, TensorType)
    if isinstance(type_.encoding, DimsAttr):
        return tuple(name.data for name in type_.encoding.names)
    return tuple(str(axis) for axis in range(type_.get_num_dims()))


def run(
    module: ModuleOp,
    name: str,
    args: Sequence[ArrayLike],
    chunks: Callable[[int], FoldTree] = whole,
) -> list[Array]:
    """
    Run the function `name` of `module` on arrays, in float64, and return its results.

    `chunks` returns the chunks of the dimension of a `compound.fold`, by its extent.
    Raises InterpretationError if the arguments do not match the function, or if an op
    has no meaning, for example if a type does not name its dimensions.
    """
    function = SymbolTable.lookup_symbol(module, name)
    if not isinstance(function, func.FuncOp):
        raise InterpretationError(f"the module has no function @{name}")
    types = function.function_type.inputs.data
    if len(args) != len(types):
        raise InterpretationError(
            f"@{name} takes {len(types)} arguments, got {len(args)}"
        )
    inputs = [
        _argument(name, type_, arg) for type_, arg in zip(types, args, strict=True)
    ]
    with np.errstate(all="ignore"):  # padding may divide by zero; nothing reads it
        try:
            results = Interpreter(module, chunks).call(name, inputs)
        except VerifyException as error:
            raise InterpretationError(f"@{name}: {error}") from error
    return [result.data for result in results]


def _argument(name: str, type_: Attribute, value: ArrayLike) -> Tensor:
    data = np.asarray(value, dtype=np.float64)
    if data.shape != _shape_of(type_):
        raise InterpretationError(
            f"@{name} takes a {type_}, got an array of shape {data.shape}"
        )
    return Tensor((), dims_of(type_), data)


def _shape_of(type_: Attribute) -> tuple[int, ...] | None:
    return type_.get_shape() if isinstance(type_, TensorType) else None
