"""Prints the host part of a Triton module: launch plan and program description."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.numpy_reference import summed_terms
from comet.codegen.python_text import INDENT, Variables, tuple_of, wrapped
from comet.codegen.triton.kernels import (
    IMPORTED,
    comment_of,
    launch_options,
    parameter_names,
)
from comet.codegen.triton.tensors import (
    drawn_between,
    output_texts,
    prepared,
    shape_and_type,
    tensor_text,
)
from comet.dialects import tl
from comet.dialects.errors import OpError

SYMBOLS = (func.FuncOp, tl.KernelOp)
"""Operations that become functions of the module."""


class LaunchPlanPrinter:
    """Prints a function that allocates buffers and launches kernels."""

    def __init__(self, module: ModuleOp, plan: func.FuncOp):
        self._module = module
        self._plan = plan
        symbols = (op.sym_name.data for op in module.walk() if isinstance(op, SYMBOLS))
        self._variables = Variables((*IMPORTED, "expect_tensor", *symbols))
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """
        Return the lines of the function.

        Raises `DiagnosticException` for operations that do not belong in a launch plan.
        """
        arguments = self._plan.body.block.args
        if not arguments:
            raise DiagnosticException(
                f"@{self._name} takes no tensor, so that no device is known to run on"
            )
        parameters = ", ".join(
            f"{self._variables.bind(arg)}: torch.Tensor" for arg in arguments
        )
        results = len(self._plan.function_type.outputs.data)
        returned = "torch.Tensor" if results == 1 else "tuple[torch.Tensor, ...]"
        header = f"def {self._name}({parameters}) -> {returned}:"
        self._lines = wrapped(header, "")
        self._lines.append(f'{INDENT}"""The launch plan of @{self._name}."""')
        names = {self._variables[argument]: argument.type for argument in arguments}
        for line in prepared(self._module, names):
            self._emit(line)
        for op in self._plan.body.block.ops:
            self._statement(op)
        return self._lines

    @property
    def _name(self) -> str:
        return self._plan.sym_name.data

    def _emit(self, line: str) -> None:
        self._lines += wrapped(line, INDENT)

    def _statement(self, op: Operation) -> None:
        if (comment := comment_of(op)) is not None:
            self._lines.append(f"{INDENT}# {comment}")
        match op:
            case tl.EmptyOp():
                self._empty(op)
            case tl.DeallocOp():
                self._emit(f"del {self._variables[op.buffer]}")
            case tl.ClearOp():
                self._emit(f"{self._variables[op.buffer]}.zero_()")
            case tl.ViewOp():
                buffer, (shape, _) = op.buffer, shape_and_type(op.result.type)
                seen = f"{self._variables[buffer]}.view({shape})"
                self._emit(f"{self._variables.bind(op.result)} = {seen}")
            case tl.LaunchOp():
                self._launch(op)
            case func.ReturnOp():
                names = [self._variables[value] for value in op.arguments]
                self._emit(f"return {', '.join(names)}")
            case _:
                raise OpError(
                    op,
                    f"{op.name} in @{self._name} is no part of a launch plan at the "
                    "level tl; run triton-distributed, or passes up to lower-to-triton",
                )

    def _empty(self, op: tl.EmptyOp) -> None:
        shape, dtype = shape_and_type(op.result.type)
        device = f"{self._variables[self._plan.body.block.args[0]]}.device"
        name = self._variables.bind(op.result)
        self._emit(
            f"{name} = torch.empty({shape}, dtype=torch.{dtype}, device={device})"
        )

    def _launch(self, op: tl.LaunchOp) -> None:
        kernel = SymbolTable.lookup_symbol(self._module, op.kernel)
        assert isinstance(kernel, tl.KernelOp)
        grid = tuple_of([str(extent) for extent in op.grid.get_values()])
        arguments = [self._variables[value] for value in op.arguments]
        parameters = parameter_names(kernel)
        arguments += [
            f"{parameters[position]}={value}"
            for position, value in kernel.constexprs().items()
        ]
        arguments += launch_options(op)
        self._emit(f"{kernel.sym_name.data}[{grid}]({', '.join(arguments)})")


def program_lines(plan: func.FuncOp, reference: func.FuncOp) -> list[str]:
    """Return the lines that describe the program to `comet.runtime`."""
    terms = summed_terms(reference)
    inputs = [
        tensor_text(
            outer.type,
            terms=terms.get(inner, 1),
            between=drawn_between(reference, inner.index),
        )
        for outer, inner in zip(
            plan.body.block.args, reference.body.block.args, strict=True
        )
    ]
    outputs = output_texts(plan, reference, [None] * len(plan.function_type.outputs))
    fields = [
        f"launch={plan.sym_name.data}",
        f"reference={reference.sym_name.data}",
        f"inputs={tuple_of(inputs)}",
        f"outputs={tuple_of(outputs)}",
    ]
    return wrapped(f"PROGRAM = Program({', '.join(fields)})", "")
