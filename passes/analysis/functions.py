"""The functions of a module that passes rewrite, and functions of some ops."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import block_taking
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import merged_extents
from comet.dialects.errors import op_of
from comet.dialects.reference import is_reference


def compute_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Yield the functions that passes rewrite: those with a body, no references."""
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp) and op.body.blocks and not is_reference(op):
            yield op


def function_names(module: ModuleOp) -> str:
    """Return the names of these functions as text: the place of a choice for all."""
    return ", ".join(f"@{func.sym_name.data}" for func in compute_functions(module))


@contextmanager
def about_only_function(module: ModuleOp) -> Generator[None]:
    """
    Run the body; a refusal that names no op is about the only function of the module.

    Mistakes in other files, such as those of hardware, name their own locations.
    """
    try:
        yield
    except PassFailedException as error:
        functions = tuple(compute_functions(module))
        if op_of(error) is None and len(functions) == 1:
            vars(error)["op"] = functions[0]
        raise


def module_of(func: FuncOp) -> ModuleOp:
    """Return the module that a function is in."""
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    return module


def in_copy(func: FuncOp) -> FuncOp:
    """Return the copy of `func` in a copy of its module."""
    functions = compute_functions(module_of(func).clone())
    return next(each for each in functions if each.sym_name == func.sym_name)


def function_of(
    name: str,
    ops: Sequence[Operation],
    takes: Sequence[SSAValue],
    returns: Sequence[SSAValue],
) -> FuncOp:
    """Return a function with clones of `ops`, with these arguments and results."""
    block = block_taking(takes)
    values: dict[SSAValue, SSAValue] = dict(zip(takes, block.args, strict=True))
    block.add_ops([op.clone(value_mapper=values) for op in ops])
    results = [values[value] for value in returns]
    block.add_op(ReturnOp(*results))
    types = block.arg_types, [value.type for value in results]
    return FuncOp(name, types, Region(block))


def operations(func: FuncOp) -> int:
    """Return the points of the iteration spaces of a function's ops, summed up."""
    ops = (op for op in func.walk() if isinstance(op, ComputeOp))
    spaces = (merged_extents((*op.operands, *op.results), op.name) for op in ops)
    return sum(prod(extents.values()) for extents in spaces)
