"""
Flags and epochs of the dataflow dialect: how consumers know what has arrived.

A flag is a counter in symmetric memory that only grows. It is not cleared between
launches: the value that a launch waits for grows with its epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from math import prod

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.dataflow.channel import ChannelType, ReceiveBufferOp, verify_blocks
from comet.dialects.parents import HasParentNamed
from comet.dialects.schedule.attributes import LoopAttr, parse_loops, print_loops


class Semantics(StrEnum):
    """The memory order of an atomic operation on a flag."""

    RELAXED = auto()
    ACQUIRE = auto()
    RELEASE = auto()
    ACQ_REL = auto()


@irdl_attr_definition
class SemanticsAttr(EnumAttribute[Semantics], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.semantics"


class FlagScope(StrEnum):
    """Who sees the effect of an atomic operation on a flag in order."""

    GPU = auto()
    SYSTEM = auto()


@irdl_attr_definition
class ScopeAttr(EnumAttribute[FlagScope], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.scope"


@irdl_attr_definition
class FlagsType(ParametrizedAttribute, TypeAttribute):
    """
    Counters that only grow: one for each source and each block of a message.

    Programs of one GPU add to the same counter: for these there is one source.

    ```mlir
    !dataflow.flags<4, [M = 4]>
    ```
    """

    name = "dataflow.flags"

    source_count: IntegerAttr[I64] = param_def()
    blocks: ArrayAttr[LoopAttr] = param_def()

    def __init__(self, sources: int, blocks: ArrayAttr[LoopAttr]):
        super().__init__(IntegerAttr(sources, i64), blocks)

    @property
    def sources(self) -> int:
        """The number of ranks that signal."""
        return self.source_count.value.data

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of counters: sources, then blocks by dimension."""
        return (self.sources, *(loop.factor for loop in self.blocks))

    @property
    def count(self) -> int:
        """The number of counters."""
        return prod(self.shape)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sources = IntegerAttr(parser.parse_integer(), i64)
            parser.parse_punctuation(",")
            return (sources, parse_loops(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.sources}, ")
            print_loops(printer, self.blocks)


class FlagSources(SymbolUserOpInterface):
    """
    Checks that flags belong to a receive buffer, and have a counter per rank.
    """

    def verify(self, op: Operation) -> None:
        assert isinstance(op, FlagsOp)
        if not isinstance(receive_buffer := op.buffer.owner, ReceiveBufferOp):
            raise VerifyException(f"'{op.name}' op is for a dataflow.receive_buffer")
        counters = 1 if receive_buffer.in_one_memory else receive_buffer.ranks
        if op.type.sources != counters:
            raise VerifyException(
                f"'{op.name}' op {counters} ranks signal, the flags are for "
                f"{op.type.sources}"
            )
        if receive_buffer.input is not None and op.type.blocks.data:
            raise VerifyException(
                f"'{op.name}' op is for an input, which is there as a whole; cut no "
                "blocks"
            )


@irdl_op_definition
class FlagsOp(IRDLOperation):
    """
    The flags that signal to consumers what has arrived in a receive buffer.

    Each launch adds `writers` to a flag: one for each tile of its block.

    ```mlir
    %flags = dataflow.flags for %recv writers 8
        : !dataflow.channel<..> -> !dataflow.flags<4, [M = 4]>
    ```
    """

    name = "dataflow.flags"
    buffer = operand_def(ChannelType)
    writers = prop_def(IntegerAttr[I64])
    result = result_def(FlagsType)
    traits = traits_def(MemoryAllocEffect(), FlagSources())
    assembly_format = (
        "`for` $buffer `writers` $writers attr-dict `:` type($buffer) `->` "
        "type($result)"
    )

    def __init__(self, buffer: SSAValue, writers: int, type: FlagsType):
        super().__init__(
            operands=[buffer],
            result_types=[type],
            properties={"writers": IntegerAttr(writers, i64)},
        )

    @property
    def type(self) -> FlagsType:
        """The type of the flags: how many sources, which blocks."""
        assert isinstance(self.result.type, FlagsType)
        return self.result.type

    def verify_(self) -> None:
        assert isinstance(self.buffer.type, ChannelType)
        verify_blocks(self, self.type.blocks, self.buffer.type.message)
        if self.writers.value.data < 1:
            raise VerifyException(f"'{self.name}' op a flag has at least one writer")


KERNEL = "dataflow.kernel"
"""The name of the op around all ops on channels, flags and epochs."""


@irdl_attr_definition
class EpochType(ParametrizedAttribute, TypeAttribute):
    """The number of a launch, from 1."""

    name = "dataflow.epoch"


@irdl_op_definition
class EpochOp(IRDLOperation):
    """
    The number of this launch of the kernel, which is counted in device memory.

    ```mlir
    %epoch = dataflow.epoch
    ```
    """

    name = "dataflow.epoch"
    result = result_def(EpochType)
    traits = traits_def(HasParentNamed((KERNEL,)))
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[EpochType()])
