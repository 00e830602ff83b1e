"""
`decompose`: graph level -> elementary level.

Takes functions of named compound ops on plain tensors. All types get named dimensions,
also those of the signature. If types already have named dimensions, a function may have
both named and elementary ops: a named op then uses the dimension names of its result,
and operands with other names are renamed. Every function gets a private reference copy,
which later passes skip. A function that is already elementary only gets a reference if
it has none. The sharding of a named op, `collective.shard` with dimensions of the op,
is copied to the elementary ops with these dimensions; shardings of arguments and
results stay. An argument of counts gets `compound.at_most`, the extent of the counted
dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import defined_in
from comet.dialects.compound import Compound, YieldOp
from comet.dialects.compound.dims import (
    DimsAttr,
    element_type_of,
    float_type_of,
    names_of,
    tensor,
)
from comet.dialects.compound.named import AT_MOST, CompoundOp
from comet.dialects.errors import OpError
from comet.dialects.reference import REFERENCE, is_reference, reference_name
from comet.passes.analysis.levels import IRLevel, level_of_function
from comet.passes.function_pass import FunctionPass
from comet.passes.graph.decompose.naming import Naming, name_dimensions, names_in_types
from comet.passes.graph.decompose.rules import (
    DECOMPOSED,
    emit_decomposition,
    has_decomposition,
)
from comet.passes.graph.decompose.site import Site
from comet.passes.graph.emitter import Emitter
from comet.passes.sharding.boundary import drop_shardings
from comet.passes.sharding.shardings import shard_op, sharding_of_op

ELEMENTARY = {
    op.name for op in Compound.operations if not issubclass(op, CompoundOp | YieldOp)
}
"""The names of the ops that a function may have besides named ones."""

Accumulator = Literal["f32", "input"]


@dataclass(frozen=True)
class DecomposePass(FunctionPass):
    """Write named compound ops as elementary ops on named dimensions."""

    name = "decompose"

    LEVELS = (IRLevel.GRAPH, IRLevel.ELEMENTARY)

    accumulator: Accumulator = "f32"
    """
    The element type of all intermediate values: f32 (an input of f64 stays f64), with
    explicit casts, or that of the input.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if level_of_function(function) is IRLevel.ELEMENTARY:
            check_elementary(function)
        else:
            plan = plan_decomposition(function)
            decompose_function(function, plan, self.accumulator)
        keep_reference(module, function)


def check_elementary(func: FuncOp) -> None:
    """Raise PassFailedException for an op of `func` that is not elementary."""
    for op in func.body.walk():
        if op.dialect_name() != Compound.name and not isinstance(op, ReturnOp):
            raise OpError(
                op,
                f"decompose: '{op.name}' of @{func.sym_name.data} is not elementary; "
                "write it with ops of the compound dialect, a constant as "
                "compound.fill",
            )


@dataclass(frozen=True)
class DecompositionPlan:
    """The named ops of a function, and the names of all its dimensions."""

    named: tuple[CompoundOp, ...]
    naming: Naming


def plan_decomposition(func: FuncOp) -> DecompositionPlan:
    """
    Choose the dimension names of `func`.

    Raises PassFailedException if it has an op without decomposition, or no op.
    """
    ops = [op for op in func.body.block.ops if not isinstance(op, ReturnOp)]
    values = tuple(defined_in(func.body.block))
    has_names = any(map(_has_names, values))
    for op in ops:
        _check_decomposable(op, has_names)
    ranks = {value: _rank(func, value) for value in values}
    named = tuple(op for op in ops if isinstance(op, CompoundOp))
    if not named:
        raise OpError(
            func,
            f"decompose: @{func.sym_name.data} has no op, so there is nothing to "
            "compile; copy an argument that it returns with compound.map copy",
        )
    if not has_names:
        return DecompositionPlan(named, name_dimensions(named, ranks))
    for value in values:
        _check_names(func, value)
    names = {value: names_of(value) for value in values}
    return DecompositionPlan(named, names_in_types(named, names))


def _has_names(value: SSAValue) -> bool:
    """Return whether a value has named dimensions."""
    type_ = value.type
    return isinstance(type_, TensorType) and isinstance(type_.encoding, DimsAttr)


def _check_names(func: FuncOp, value: SSAValue) -> None:
    """Raise PassFailedException for a value without named dimensions."""
    if not _has_names(value):
        raise OpError(
            func,
            f"decompose: {value.type} has no named dimensions, and other values of "
            f"@{func.sym_name.data} have; write #compound.dims<..> into all types of a "
            "function, or into none",
        )


def _check_decomposable(op: Operation, has_names: bool) -> None:
    """Raise PassFailedException for an op that is neither named nor elementary."""
    if isinstance(op, CompoundOp) and has_decomposition(op):
        return
    if has_names and op.name in ELEMENTARY:
        return
    names = ", ".join(sorted(DECOMPOSED))
    raise OpError(
        op,
        f"decompose: '{op.name}' has no decomposition; ops with one are {names}; add a "
        "rule to passes/graph/decompose/rules/, or a method decompose to its class",
    )


def _rank(op: Operation, value: SSAValue) -> int:
    type_ = value.type
    if not isinstance(type_, TensorType):
        raise OpError(
            op,
            f"decompose: '{op.name}' has a value of type {type_}; the graph level has "
            "tensors only",
        )
    return type_.get_num_dims()


def decompose_function(
    func: FuncOp, plan: DecompositionPlan, accumulator: Accumulator
) -> None:
    """Replace the named ops of `func`, and name the dimensions in its signature."""
    for argument in func.body.block.args:
        extents = zip(plan.naming.values[argument], _shape(argument), strict=True)
        type_ = tensor(list(extents), element_type_of(argument))
        Rewriter.replace_value_with_new_type(argument, type_)
    _bound_counts(func, plan.named)
    for op in plan.named:
        _decompose_op(op, plan.naming, accumulator)
    func.update_function_type()


def _bound_counts(func: FuncOp, named: Sequence[CompoundOp]) -> None:
    """Set `compound.at_most` on arguments that are counts."""
    arguments = func.body.block.args
    attributes = [
        dict(a.data) for a in func.arg_attrs or [DictionaryAttr({})] * len(arguments)
    ]
    for op in named:
        for index, dim in op.LENGTHS.items():
            value, bound = op.inputs[index], op.named_extents()[dim]
            if isinstance(value, BlockArgument):
                attributes[value.index][AT_MOST] = IntegerAttr(bound, i64)
    if any(attributes):
        func.arg_attrs = ArrayAttr(map(DictionaryAttr, attributes))


def _shape(value: SSAValue) -> tuple[int, ...]:
    type_ = value.type
    assert isinstance(type_, TensorType)
    return type_.get_shape()


def _decompose_op(op: CompoundOp, naming: Naming, accumulator: Accumulator) -> None:
    """Replace one op; operands are renamed to the names that the op uses."""
    dims, emit, before = naming.ops[op], Emitter(op), op.prev_op
    element = float_type_of(op.result)
    operands = [
        emit.rename(value, tuple(dims[name] for name in names))
        for value, names in zip(op.inputs, op.operand_dims, strict=True)
    ]
    site = Site(emit, operands, dims, _accumulator_type(element, accumulator))
    result = emit.cast(_decomposed(op, site), element)
    result.name_hint = op.result.name_hint or result.name_hint
    _copy_sharding(op, dims, before)
    Rewriter.replace_op(op, (), [result])


def _decomposed(op: CompoundOp, site: Site) -> SSAValue:
    """Return the emitted value; raise if its dimensions are not those of the result."""
    result = emit_decomposition(op, site)
    expected = tuple(site.dims[name] for name in op.result_dims)
    if result and _has_names(result) and names_of(result) == expected:
        return result
    raise OpError(
        op,
        f"decompose: the decomposition of '{op.name}' returns "
        f"{result and result.type}, and the op's result has the "
        f"dimensions {', '.join(expected)}",
    )


def _copy_sharding(
    named: CompoundOp, dims: Mapping[str, str], before: Operation | None
) -> None:
    """Copy the sharding of a named op to the ops between `before` and it."""
    sharding = sharding_of_op(named)
    for dim in sharding:
        if dim not in dims:
            raise PassFailedException(
                f"decompose: '{named.name}' is sharded in {dim}, which it does not "
                f"have; its dimensions are {', '.join(dims)}"
            )
    renamed = {dims[dim]: axes for dim, axes in sharding.items()}
    op = named.prev_op
    while op is not before and op is not None:
        shard_op(op, renamed)
        op = op.prev_op


def _accumulator_type(element: AnyFloat, accumulator: Accumulator) -> AnyFloat:
    if accumulator == "input" or element.bitwidth > f32.bitwidth:
        return element
    return f32


def keep_reference(module: ModuleOp, func: FuncOp) -> None:
    """
    Add a private copy of `func` as its reference, unless it has one.

    Raises PassFailedException if the symbol of the copy is taken.
    """
    name = reference_name(func.sym_name.data)
    existing = SymbolTable.lookup_symbol(module, name)
    if isinstance(existing, FuncOp) and is_reference(existing):
        return
    if existing is not None:
        raise OpError(
            func,
            f"decompose: the name @{name} is taken; the reference of "
            f"@{func.sym_name.data} needs it",
        )
    copy = func.clone()
    copy.properties["sym_name"] = StringAttr(name)
    copy.properties["sym_visibility"] = StringAttr("private")
    copy.attributes[REFERENCE] = UnitAttr()
    drop_shardings(copy)
    Rewriter.insert_op(copy, InsertPoint.after(func))
