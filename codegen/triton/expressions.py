"""Prints each `tl` operation that has a value as a Python expression."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.python_text import Expr, Precedence, call, infix, tuple_of
from comet.dialects.errors import OpError, about
from comet.dialects.tl import ForOp, blocks, descriptors, memory, remote
from comet.dialects.tl import math as tl_math
from comet.dialects.tl.types import (
    BinaryKind,
    CompareKind,
    ReduceKind,
    UnaryKind,
    element_of,
    shape_of,
)
from comet.op_table import OpTable

TRITON_TYPES: Mapping[Attribute, str] = {
    Float16Type(): "float16",
    BFloat16Type(): "bfloat16",
    Float32Type(): "float32",
    i1: "int1",
    i8: "int8",
    i32: "int32",
    i64: "int64",
}
"""The name of an element type in `triton.language`."""

UNARY: Mapping[UnaryKind, str] = {
    kind: f"tl.{kind}" for kind in UnaryKind if kind is not UnaryKind.NEG
}
INFIX: Mapping[BinaryKind, tuple[str, Precedence]] = {
    BinaryKind.ADD: ("+", Precedence.SUM),
    BinaryKind.SUB: ("-", Precedence.SUM),
    BinaryKind.MUL: ("*", Precedence.PRODUCT),
    BinaryKind.DIV: ("/", Precedence.PRODUCT),
    BinaryKind.FLOORDIV: ("//", Precedence.PRODUCT),
    BinaryKind.MOD: ("%", Precedence.PRODUCT),
    BinaryKind.AND: ("&", Precedence.AND),
    BinaryKind.OR: ("|", Precedence.OR),
}
CALLED: Mapping[BinaryKind, str] = {
    BinaryKind.MAX: "tl.maximum",
    BinaryKind.MIN: "tl.minimum",
}
KEEPS_NAN = ("propagate_nan=tl.PropagateNan.ALL",)
"""Has a maximum be NaN where an operand is, as in numpy and torch; Triton's is not."""
COMPARE: Mapping[CompareKind, str] = {
    CompareKind.LT: "<",
    CompareKind.LE: "<=",
    CompareKind.GT: ">",
    CompareKind.GE: ">=",
    CompareKind.EQ: "==",
    CompareKind.NE: "!=",
}
REDUCE: Mapping[ReduceKind, str] = {
    ReduceKind.SUM: "tl.sum",
    ReduceKind.MAX: "tl.max",
    ReduceKind.MIN: "tl.min",
}

MAX_F32 = 3.4028234663852886e38

Read = Callable[[SSAValue], Expr]
"""Returns the expression of an operand."""

EXPRESSIONS = OpTable[Read, Expr]()
prints = EXPRESSIONS.enter


def type_name(type: Attribute) -> str:
    """
    Return Triton's name of an element type, which is torch's, too, but for i1.

    Raises `DiagnosticException` for types that kernels cannot have.
    """
    name = TRITON_TYPES.get(element_of(type))
    if name is None:
        raise DiagnosticException(
            f"Triton kernels have no element type {element_of(type)}; "
            "use f16, bf16, f32, i32, i64, i8 or i1"
        )
    return name


def literal(value: IntegerAttr | FloatAttr) -> Expr:
    """Return a number as Python writes it, floats with only the needed digits."""
    number = value.value.data
    if value.type == i1:
        return Expr(str(number != 0))
    if isinstance(number, float) and not math.isfinite(number):
        return call("float", f'"{number}"')
    text = shortest(number) if isinstance(number, float) else str(number)
    return Expr(text, Precedence.UNARY if number < 0 else Precedence.ATOM)


def shortest(number: float) -> str:
    """Return the shortest decimal that rounds to `number` in f32."""

    def rounded(value: float) -> bytes:
        return struct.pack("f", value)

    candidates = (float(f"{number:.{digits}g}") for digits in range(1, 18))
    # A candidate may round up beyond the largest f32.
    fitting = (c for c in candidates if abs(c) <= MAX_F32)
    exact = (c for c in fitting if rounded(c) == rounded(number))
    return repr(next(exact, number))


@prints(blocks.ProgramIdOp)
def _program_id(op: blocks.ProgramIdOp, read: Read) -> Expr:
    return call("tl.program_id", str(op.axis.value.data))


@prints(blocks.NumProgramsOp)
def _num_programs(op: blocks.NumProgramsOp, read: Read) -> Expr:
    return call("tl.num_programs", str(op.axis.value.data))


@prints(blocks.Swizzle2dOp)
def _swizzle2d(op: blocks.Swizzle2dOp, read: Read) -> Expr:
    numbers = (*op.shape.get_values(), op.group.value.data)
    indices = (read(op.row).text, read(op.column).text)
    return call("tl.swizzle2d", *indices, *map(str, numbers))


@prints(blocks.ConstantOp)
def _constant(op: blocks.ConstantOp, read: Read) -> Expr:
    return literal(op.value)


@prints(blocks.ArangeOp)
def _arange(op: blocks.ArangeOp, read: Read) -> Expr:
    return call("tl.arange", "0", read(op.end).text)


@prints(blocks.ExpandDimsOp)
def _expand_dims(op: blocks.ExpandDimsOp, read: Read) -> Expr:
    axes = op.axes.get_values()
    rank = len(shape_of(op.result.type))
    index = ", ".join("None" if axis in axes else ":" for axis in range(rank))
    return Expr(f"{read(op.input).at(Precedence.ATOM)}[{index}]")


@prints(blocks.BroadcastToOp)
def _broadcast_to(op: blocks.BroadcastToOp, read: Read) -> Expr:
    shape = tuple_of([read(dim).text for dim in op.dims])
    return call("tl.broadcast_to", read(op.input).text, shape)


@prints(blocks.PermuteOp)
def _permute(op: blocks.PermuteOp, read: Read) -> Expr:
    order = op.order.get_values()
    if order == (1, 0):
        return call("tl.trans", read(op.input).text)
    return call("tl.permute", read(op.input).text, tuple_of([str(i) for i in order]))


@prints(blocks.FullOp)
def _full(op: blocks.FullOp, read: Read) -> Expr:
    shape = tuple_of([read(dim).text for dim in op.dims])
    dtype = f"dtype=tl.{type_name(op.result.type)}"
    if op.value.value.data == 0:
        return call("tl.zeros", shape, dtype)
    return call("tl.full", shape, literal(op.value).text, dtype)


@prints(tl_math.UnaryOp)
def _unary(op: tl_math.UnaryOp, read: Read) -> Expr:
    kind, operand = op.kind.data, read(op.input)
    if kind is UnaryKind.NEG:
        return Expr(f"-{operand.at(Precedence.UNARY)}", Precedence.UNARY)
    return call(UNARY[kind], operand.text)


@prints(tl_math.BinaryOp)
def _binary(op: tl_math.BinaryOp, read: Read) -> Expr:
    kind, lhs, rhs = op.kind.data, read(op.lhs), read(op.rhs)
    if kind in CALLED:
        floats = not isinstance(element_of(op.result.type), IntegerType)
        return call(CALLED[kind], lhs.text, rhs.text, *(KEEPS_NAN if floats else ()))
    return infix(*INFIX[kind], lhs, rhs)


@prints(tl_math.CmpOp)
def _cmp(op: tl_math.CmpOp, read: Read) -> Expr:
    # Python chains comparisons, so a comparison on either side needs parentheses.
    lhs, rhs = (read(value).at(Precedence.OR) for value in (op.lhs, op.rhs))
    return Expr(f"{lhs} {COMPARE[op.kind.data]} {rhs}", Precedence.COMPARE)


@prints(tl_math.WhereOp)
def _where(op: tl_math.WhereOp, read: Read) -> Expr:
    operands = (op.mask, op.then, op.otherwise)
    return call("tl.where", *(read(value).text for value in operands))


@prints(tl_math.RandOp)
def _rand(op: tl_math.RandOp, read: Read) -> Expr:
    return call("tl.rand", read(op.seed).text, read(op.offset).text)


@prints(tl_math.CastOp)
def _cast(op: tl_math.CastOp, read: Read) -> Expr:
    type_ = f"tl.{type_name(op.result.type)}"
    owner, is_wide = op.input.owner, element_of(op.result.type) == i64
    # Of an address, which is wide, some part is no number of a loop.
    may_be_number = isinstance(owner, Block) or not is_wide
    if isinstance(owner, blocks.ConstantOp) or (
        may_be_number and _is_of_loop(op.input)
    ):
        # It is a Python number, or may be one in Triton's interpreter.
        return call("tl.cast", read(op.input).text, type_)
    return Expr(f"{read(op.input).at(Precedence.ATOM)}.to({type_})")


def _is_of_loop(value: SSAValue) -> bool:
    """Return whether `value` is a number that is computed of a loop variable."""
    if not isinstance(value.type, IntegerType):
        return False
    if isinstance(value.owner, Operation):
        return any(map(_is_of_loop, value.owner.operands))
    return isinstance(value.owner.parent_op(), ForOp)


@prints(tl_math.ReduceOp)
def _reduce(op: tl_math.ReduceOp, read: Read) -> Expr:
    axis = f"axis={op.axis.value.data}"
    return call(REDUCE[op.kind.data], read(op.input).text, axis)


@prints(tl_math.CumsumOp)
def _cumsum(op: tl_math.CumsumOp, read: Read) -> Expr:
    return call("tl.cumsum", read(op.input).text, f"axis={op.axis.value.data}")


@prints(tl_math.DotOperandOp)
def _dot_operand(op: tl_math.DotOperandOp, read: Read) -> Expr:
    return call("dot_operand", read(op.input).text)


@prints(tl_math.DotOp)
def _dot(op: tl_math.DotOp, read: Read) -> Expr:
    arguments = [read(op.lhs).text, read(op.rhs).text]
    if op.acc is not None:
        arguments.append(read(op.acc).text)
    if op.precision is not None:
        arguments.append(f'input_precision="{op.precision.data}"')
    return call("tl.dot", *arguments)


@prints(memory.AddPtrOp)
def _addptr(op: memory.AddPtrOp, read: Read) -> Expr:
    return infix("+", Precedence.SUM, read(op.ptr), read(op.offset))


@prints(memory.LoadOp)
def _load(op: memory.LoadOp, read: Read) -> Expr:
    arguments = [read(op.ptr).text]
    if op.mask is not None:
        arguments.append(f"mask={read(op.mask).text}")
    if op.other is not None:
        arguments.append(f"other={read(op.other).text}")
    return call("tl.load", *arguments)


@prints(descriptors.MakeDescriptorOp)
def _make_descriptor(op: descriptors.MakeDescriptorOp, read: Read) -> Expr:
    strides = (*(read(stride).text for stride in op.strides), "1")
    return call(
        "tl.make_tensor_descriptor",
        read(op.ptr).text,
        tuple_of([read(extent).text for extent in op.shape]),
        tuple_of(strides),
        tuple_of([read(extent).text for extent in op.block]),
    )


@prints(descriptors.DescriptorLoadOp)
def _descriptor_load(op: descriptors.DescriptorLoadOp, read: Read) -> Expr:
    indices = tuple_of([read(index).text for index in op.indices])
    return call(f"{read(op.descriptor).at(Precedence.ATOM)}.load", indices)


@prints(descriptors.DescriptorStoreOp)
def _descriptor_store(op: descriptors.DescriptorStoreOp, read: Read) -> Expr:
    indices = tuple_of([read(index).text for index in op.indices])
    store = f"{read(op.descriptor).at(Precedence.ATOM)}.store"
    return call(store, indices, read(op.value).text)


@prints(descriptors.SplitOp)
def _split(op: descriptors.SplitOp, read: Read) -> Expr:
    return call("tl.split", read(op.input).text)


@prints(descriptors.ReshapeOp)
def _reshape(op: descriptors.ReshapeOp, read: Read) -> Expr:
    dims = tuple_of([read(dim).text for dim in op.dims])
    return call("tl.reshape", read(op.input).text, dims)


@prints(remote.RemoteLoadOp)
def _remote_load(op: remote.RemoteLoadOp, read: Read) -> Expr:
    where = (op.ptr, op.current, op.remote, op.bases)
    arguments = [read(value).text for value in where]
    if op.mask is not None:
        arguments.append(f"mask={read(op.mask).text}")
    if op.other is not None:
        arguments.append(f"other={read(op.other).text}")
    return call("load", *arguments)


@prints(remote.RankAndProgramIdOp)
def _rank_and_program_id(op: remote.RankAndProgramIdOp, read: Read) -> Expr:
    arguments = [read(op.rank).text, read(op.programs).text]
    if op.first is not None:
        arguments.append(str(op.first.value.data))
    return call("rank_and_program_id", *arguments)


REMOTE: Mapping[type[Operation], str] = {
    remote.ArriveLastOp: "arrive_last",
    remote.FinishEpochOp: "finish_epoch",
    remote.NextEpochOp: "next_epoch",
    remote.SymmetricAddressOp: "symmetric_address",
    remote.RankAndProgramIdOp: "rank_and_program_id",
    remote.RebaseAmongOp: "rebase_among",
    remote.RebaseOp: "rebase",
    remote.RemoteLoadOp: "load",
    remote.SignalAddAllOp: "signal_add_all",
    remote.SignalAddOp: "signal_add",
    remote.SignalAllOp: "signal_all",
    remote.SignalOp: "signal",
    remote.SignalProgramsOp: "signal_programs",
    remote.WaitAllOp: "wait_all",
    remote.WaitOp: "wait",
    remote.WaitProgramsOp: "wait_programs",
}
"""The function of `comet.runtime.shim` for each operation."""


def expression(op: Operation, read: Read) -> Expr:
    """
    Return the expression of an operation that has one result.

    Raises `DiagnosticException` for operations that do not belong in a kernel.
    """
    handler = EXPRESSIONS.find(op)
    if handler is None and (function := REMOTE.get(type(op))) is not None:
        return call(function, *(read(value).text for value in op.operands))
    if handler is None:
        raise OpError(
            op, f"{op.name} cannot be printed as Triton; run lower-to-triton first"
        )
    with about(op):
        return handler(op, read)
