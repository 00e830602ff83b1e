"""
Prints the plan of a rank: a class that allocates once and launches many times.

On one GPU results are new tensors in each call, as those of PyTorch's functions are. On
several ranks they stay where they are, as peers may read and write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
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
    split_axis,
    tensor_text,
)
from comet.dialects import tl
from comet.dialects.blocks import yielded_by
from comet.dialects.errors import OpError
from comet.dialects.tl.types import shape_of

DOUBLE = INDENT * 2
DESCRIBING = ("Rank", "RankProgram", "Tensor")
"""The classes of `comet.runtime` that describe a program of ranks."""
ALLOCATIONS = (tl.HeapZerosOp, tl.ZerosOp, tl.EmptyOp)


def rank_plan(function: func.FuncOp) -> tl.PlanOp | None:
    """Return the plan for several ranks in a function, if there is one."""
    first = function.body.block.first_op
    return first if isinstance(first, tl.PlanOp) else None


def class_name(function: func.FuncOp) -> str:
    """Return the name of the class of a function's plan: AgGemm of ag_gemm."""
    name = function.sym_name.data
    camel_case = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return f"{camel_case}Plan" if camel_case in ("", name, *DESCRIBING) else camel_case


@dataclass
class RankPlanPrinter:
    """Prints the class that the host program of one rank uses."""

    module: ModuleOp
    function: func.FuncOp
    plan: tl.PlanOp

    def __post_init__(self):
        ops = (op for op in self.module.ops if isinstance(op, tl.KernelOp))
        kernels = (op.sym_name.data for op in ops)
        reserved = ("expect_tensor", "rank", "self", "epoch", *kernels)
        self._variables = Variables((*IMPORTED, *reserved))
        found = _symmetric_inputs(self.plan).items()
        self._symmetric = {value: (self._name_of(value), op) for value, op in found}
        self._new_results = _new_results(self.plan)

    def lines(self) -> list[str]:
        """
        Return the lines of the class.

        Raises `DiagnosticException` for operations that do not belong in a plan.
        """
        name = self.function.sym_name.data
        arguments = self.plan.body.block.args
        if not arguments:
            raise DiagnosticException(
                f"@{name} takes no tensor, so that there is nothing to split over ranks"
            )
        lines = [
            f"class {class_name(self.function)}:",
            f'{INDENT}"""',
            f"{INDENT}What one rank does for @{name}, called with its shard of inputs."
            if self.plan.ranks.value.data > 1
            else f"{INDENT}@{name} on one GPU.",
            "",
            *(f"{INDENT}{line}" for line in self._on_memory()),
            f'{INDENT}"""',
            "",
            f"{INDENT}def __init__(self, rank: Rank) -> None:",
            f"{DOUBLE}self.rank = rank",
        ]
        for op in self.plan.body.block.ops:
            if isinstance(op, ALLOCATIONS) and op not in self._new_results:
                lines += self._allocation(op)
        lines.append(f"{DOUBLE}rank.barrier()  # flags are zero before anybody signals")
        for name, op in self._symmetric.values():
            lines += ["", *self._address_method(name, op)]
        return [*lines, "", *self._call()]

    def _on_memory(self) -> tuple[str, str]:
        """Return the sentence about memory in the docstring of the class."""
        if self.plan.ranks.value.data > 1:
            return (
                "Everything is allocated here, once; a call only launches.",
                "Results are the same memory every time.",
            )
        return (
            "Counters, flags and partial results are allocated here, once.",
            "Results are new tensors in each call.",
        )

    def function_lines(self) -> list[str]:
        """Return the lines of a function of tensors, of the plan of one rank."""
        name, plan = self.function.sym_name.data, class_name(self.function)
        return [
            f"{name} = PlanFunction({plan})",
            f'"""Launch the kernels, with the memory of one {plan} on each GPU."""',
        ]

    def program_lines(self, reference: func.FuncOp) -> list[str]:
        """Return the lines that describe the program to `comet.runtime`."""
        plan_class = class_name(self.function)
        address_methods = {
            argument.index: f"{plan_class}.{name}"
            for argument, (name, _) in self._symmetric.items()
        }
        return _program_lines(self.function, self.plan, reference, address_methods)

    def _name_of(self, argument: BlockArgument) -> str:
        return self._variables.names.fresh(argument.name_hint or "x")

    def _address_method(self, name: str, op: tl.HeapZerosOp) -> list[str]:
        """Return the method that says where an input of a launch has to be."""
        (slots, *_) = shape_of(op.result.type)
        return [
            f"{INDENT}def {name}(self, epoch: int) -> torch.Tensor:",
            f'{DOUBLE}"""',
            f"{DOUBLE}Return where launch number `epoch`, from 1, finds {name}.",
            "",
            f"{DOUBLE}Write it there before that launch, and after the one before it.",
            f'{DOUBLE}"""',
            f"{DOUBLE}return {self._variables[op.result]}[epoch % {slots}]",
        ]

    def _allocation(self, op: tl.HeapZerosOp | tl.ZerosOp | tl.EmptyOp) -> list[str]:
        name = self._variables.names.fresh(op.result.name_hint or "buffer")
        kept = name if op in self._new_results else f"self.{name}"
        self._variables[op.result] = kept
        shape, dtype = shape_and_type(op.result.type)
        arguments = f"{shape}, torch.{dtype}"
        match op:
            case tl.HeapZerosOp():
                allocation = f'rank.heap.zeros({arguments}, "{name}")'
            case tl.ZerosOp():
                allocation = f"rank.zeros({arguments})"
            case _:
                allocation = f"rank.empty({arguments})"
        return wrapped(f"{kept} = {allocation}", DOUBLE)

    def _call(self) -> list[str]:
        arguments = [
            argument
            for argument in self.plan.body.block.args
            if argument not in self._symmetric
        ]
        names = [self._name_of(argument) for argument in arguments]
        self._variables.update(zip(arguments, names, strict=True))
        parameters = ", ".join(["self", *(f"{name}: torch.Tensor" for name in names)])
        count = len(self.function.function_type.outputs.data)
        returned = "torch.Tensor" if count == 1 else "tuple[torch.Tensor, ...]"
        lines = wrapped(f"def __call__({parameters}) -> {returned}:", INDENT)
        suffix = "; other ranks do the same" if self.plan.ranks.value.data > 1 else ""
        lines.append(f'{DOUBLE}"""Launch the kernels{suffix}."""')
        lines.append(f"{DOUBLE}rank = self.rank")
        types = (argument.type for argument in arguments)
        for line in prepared(self.module, dict(zip(names, types, strict=True))):
            lines += wrapped(line, DOUBLE)
        for op in self.plan.body.block.ops:
            lines += self._statement(op)
        return lines

    def _statement(self, op: Operation) -> list[str]:
        comment = comment_of(op)
        lines = [] if comment is None else [f"{DOUBLE}# {comment}"]
        match op:
            case tl.RankOp():
                self._variables[op.result] = "rank.rank"
            case tl.HeapBasesOp():
                self._variables[op.result] = "rank.heap_bases"
            case tl.ClearOp():
                lines.append(f"{DOUBLE}{self._variables[op.buffer]}.zero_()")
            case tl.ViewOp():
                shape, _ = shape_and_type(op.result.type)
                seen = f"{self._variables[op.buffer]}.view({shape})"
                name = self._variables.bind(op.result)
                lines.append(f"{DOUBLE}{name} = {seen}")
            case tl.LaunchOp():
                lines += self._launch(op)
            case tl.BarrierOp():
                lines.append(f"{DOUBLE}rank.barrier()")
            case tl.PlanYieldOp():
                values = (value for value, _ in _returned(self.function, self.plan))
                names = [self._variables[value] for value in values]
                lines += wrapped(f"return {', '.join(names)}", DOUBLE)
            case tl.EmptyOp() if op in self._new_results:
                lines += self._allocation(op)
            case _ if not isinstance(op, ALLOCATIONS):
                raise OpError(
                    op,
                    f"{op.name} in @{self.function.sym_name.data} is no part of a "
                    "plan; run lower-to-triton first",
                )
            case _:
                pass
        return lines

    def _launch(self, op: tl.LaunchOp) -> list[str]:
        kernel = SymbolTable.lookup_symbol(self.module, op.kernel)
        assert isinstance(kernel, tl.KernelOp)
        grid = tuple_of([str(extent) for extent in op.grid.get_values()])
        arguments = [kernel.sym_name.data, grid]
        arguments += [self._variables[value] for value in op.arguments]
        names = parameter_names(kernel)
        for parameter in kernel.body.block.args:
            match parameter.type:
                case tl.ConstexprType():
                    value = str(parameter.type.value.data)
                case tl.CacheModifierType():
                    value = "rank.write_through"
                case tl.ProgramsType():
                    value = f"rank.programs({op.grid.get_values()[0]})"
                case _:
                    continue
            arguments.append(f"{names[parameter.index]}={value}")
        arguments += launch_options(op)
        if op.cooperative is not None:
            arguments.append("launch_cooperative_grid=True")
        return wrapped(f"rank.launch({', '.join(arguments)})", DOUBLE)


def _new_results(plan: tl.PlanOp) -> frozenset[Operation]:
    """Return the allocations of the results of one GPU: those of each call."""
    if plan.ranks.value.data > 1:
        return frozenset()
    found: set[Operation] = set()
    for value in yielded_by(plan.body.block):
        while isinstance(value.owner, tl.ViewOp):
            value = value.owner.buffer
        if isinstance(value.owner, tl.EmptyOp):
            found.add(value.owner)
    return frozenset(found)


def _symmetric_inputs(plan: tl.PlanOp) -> dict[BlockArgument, tl.HeapZerosOp]:
    """Return the arguments that are in symmetric memory, and their allocations."""
    return {
        op.input: op
        for op in plan.body.block.ops
        if isinstance(op, tl.HeapZerosOp) and isinstance(op.input, BlockArgument)
    }


def _number(argument: SSAValue) -> int:
    """Return the index of the function argument that a value is."""
    assert isinstance(argument, BlockArgument)
    return argument.index


def _returned(function: func.FuncOp, plan: tl.PlanOp) -> list[tuple[SSAValue, str]]:
    """
    Return each result on one rank, and its sharded dimension, empty if there is none.

    A result is a value that the plan computes, or an argument of the function.
    """
    inner = plan.body.block
    held: dict[SSAValue, tuple[SSAValue, str]] = {}
    for outer, value, split in zip(plan.ins, inner.args, plan.ins_split, strict=True):
        held.setdefault(outer, (value, split.data))
    yielded = yielded_by(inner)
    for outer, value, split in zip(plan.outs, yielded, plan.outs_split, strict=True):
        held[outer] = (value, split.data)
    return [held[value] for value in yielded_by(function.body.block)]


def _program_lines(
    function: func.FuncOp,
    plan: tl.PlanOp,
    reference: func.FuncOp,
    address_methods: Mapping[int, str],
) -> list[str]:
    """
    Return the lines that describe a program of several ranks.

    `address_methods` has, by the index of an input, the name of the method that says
    where it has to be.
    """
    terms, arguments = summed_terms(reference), reference.body.block.args
    numbers = [_number(outer) for outer in plan.ins]
    inputs = [
        tensor_text(
            outer.type,
            terms=terms.get(arguments[number], 1),
            split=split_axis(outer.type, split.data),
            between=drawn_between(reference, number),
            address=address_methods.get(index),
            same_as=first if (first := numbers.index(number)) < index else None,
        )
        for index, (outer, split, number) in enumerate(
            zip(plan.ins, plan.ins_split, numbers, strict=True)
        )
    ]
    types, splits = function.function_type.outputs, _returned(function, plan)
    pairs = zip(types, splits, strict=True)
    axes = [split_axis(type, split) for type, (_, split) in pairs]
    outputs = output_texts(function, reference, axes)
    fields = [
        f"plan={class_name(function)}",
        f"reference={reference.sym_name.data}",
        f"ranks={plan.ranks.value.data}",
        f"inputs={tuple_of(inputs)}",
        f"outputs={tuple_of(outputs)}",
    ]
    return wrapped(f"PROGRAM = RankProgram({', '.join(fields)})", "")
