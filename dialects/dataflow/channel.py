"""
Channels of the dataflow dialect: how one rank's values reach the others, tile by tile.

A `dataflow.channel` is lowered by `lower-channels` to a `dataflow.receive_buffer`,
which is symmetric memory, and `dataflow.flags`. `dialects/dataflow/transfer.py` has the
ops of kernels on them.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from enum import auto

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    BlockArgument,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    opt_operand_def,
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

from comet.dialects.collective.mesh import lookup_mesh, verify_axes
from comet.dialects.compound.dims import (
    ceil_div,
    element_type_of,
    extents_of,
    level_of,
    with_extents,
)
from comet.dialects.schedule.attributes import (
    LoopAttr,
    LoopList,
)


class ChannelMode(StrEnum):
    """Where a message is until its consumer reads it."""

    PUSH = auto()
    """In a receive buffer at the consumer, stored there by the producer."""
    PULL = auto()
    """In the producer's own symmetric memory, from which the consumer loads it."""


@irdl_attr_definition
class ChannelModeAttr(EnumAttribute[ChannelMode], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.mode"


@irdl_attr_definition
class ChannelType(ParametrizedAttribute, TypeAttribute):
    """
    The values of a channel: every rank sends `sent` and receives `received`.

    The senders' values are concatenated along `gather`; a dimension that `sent` does
    not have is new, with one element per sender. With `split`, a receiver gets only its
    own shard of that dimension.

    ```mlir
    !dataflow.channel<push gather K : tensor<64x16xf16, #compound.dims<M, K>>
                      -> tensor<64x64xf16, #compound.dims<M, K>>>
    !dataflow.channel<pull gather N split M : tensor<64x16xf16, #compound.dims<M, N>>
                      -> tensor<16x64xf16, #compound.dims<M, N>>>
    ```
    """

    name = "dataflow.channel"

    mode_attr: ChannelModeAttr = param_def()
    gather_dim: StringAttr = param_def()
    split_dim: StringAttr = param_def()
    sent: TensorType[Attribute] = param_def(base(TensorType))
    received: TensorType[Attribute] = param_def(base(TensorType))

    def __init__(
        self,
        mode: ChannelMode,
        gather: str,
        split: str | None,
        sent: Attribute,
        received: Attribute,
    ):
        assert isinstance(sent, TensorType)
        assert isinstance(received, TensorType)
        super().__init__(
            ChannelModeAttr(mode),
            StringAttr(gather),
            StringAttr(split or ""),
            sent,
            received,
        )

    @property
    def mode(self) -> ChannelMode:
        """Where a message is until its consumer reads it."""
        return self.mode_attr.data

    @property
    def gather(self) -> str:
        """The dimension along which the senders' values are concatenated."""
        return self.gather_dim.data

    @property
    def split(self) -> str | None:
        """The dimension of which every receiver gets its own shard, if any."""
        return self.split_dim.data or None

    @property
    def message(self) -> TensorType[Attribute]:
        """The type of what one rank sends to one other."""
        if self.split is None:
            return self.sent
        shard = extents_of(self.received)[self.split]
        return with_extents(self.sent, {self.split: shard})

    @property
    def source_extent(self) -> int:
        """The extent of the gathered dimension on one sender."""
        return extents_of(self.sent).get(self.gather, 1)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            mode = parser.parse_str_enum(ChannelMode)
            parser.parse_keyword("gather")
            gather, split = parser.parse_identifier(" as a dimension"), ""
            if parser.parse_optional_keyword("split") is not None:
                split = parser.parse_identifier(" as a dimension")
            parser.parse_punctuation(":")
            sent = parser.parse_type()
            parser.parse_punctuation("->")
            received = parser.parse_type()
        names = (StringAttr(gather), StringAttr(split))
        return (ChannelModeAttr(mode), *names, sent, received)

    def print_parameters(self, printer: Printer) -> None:
        split = f" split {self.split}" if self.split else ""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.mode} gather {self.gather}{split} : ")
            printer.print_attribute(self.sent)
            printer.print_string(" -> ")
            printer.print_attribute(self.received)

    def verify(self) -> None:
        if element_type_of(self.sent) != element_type_of(self.received):
            raise VerifyException("a channel keeps the element type")
        sent, received = extents_of(self.sent), extents_of(self.received)
        if self.gather not in received:
            raise VerifyException(
                f"a channel gathers {self.gather}, which {self.received} does not have"
            )
        if self.split == self.gather:
            raise VerifyException(
                f"a channel gathers one dimension and splits another, not {self.split} "
                "twice"
            )
        if self.split is not None and self.split not in sent:
            raise VerifyException(
                f"a channel splits {self.split}, which {self.sent} does not have"
            )
        moved = {self.gather: 0} | ({self.split: 0} if self.split else {})
        if {**received, **moved} != {**sent, **moved}:
            raise VerifyException(
                f"a channel keeps every dimension but {', '.join(moved)}: {self.sent} "
                f"and {self.received}"
            )


class ChannelMesh(SymbolUserOpInterface):
    """Checks a channel's mesh, and its shards for the ranks of the group."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, ChannelOp | ReceiveBufferOp)
        verify_axes(op, lookup_mesh(op, op.mesh), op.axis_names)
        op.verify_shards()


class _GroupOp(IRDLOperation, ABC):
    """
    Common to a channel and a receive buffer: the ranks, the type, and an input.

    With `of`, the memory of the channel is an input of the program, which the caller
    has written: no kernel stores to the channel, one signals it.
    """

    input = opt_operand_def(base(TensorType))
    mesh = prop_def(FlatSymbolRefAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    result = result_def(ChannelType)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The mesh axes of the group, major first."""
        return tuple(axis.data for axis in self.axes)

    @property
    def ranks(self) -> int:
        """The number of ranks of the group."""
        return lookup_mesh(self, self.mesh).size(self.axis_names)

    @property
    def type(self) -> ChannelType:
        """The type of the channel."""
        assert isinstance(self.result.type, ChannelType)
        return self.result.type

    @property
    def in_one_memory(self) -> bool:
        """
        Whether the group is inside one GPU: its axes begin at a level below the memory
        of the channel, which all instances share.
        """
        levels = lookup_mesh(self, self.mesh).axis_levels
        memory = level_of(self.type.sent)
        return all(levels.get(axis, memory) != memory for axis in self.axis_names)

    def verify_shards(self) -> None:
        """Check that shards have ceil(extent / ranks) elements."""
        type_, ranks = self.type, self.ranks
        sent, received = extents_of(type_.sent), extents_of(type_.received)
        shards = {type_.gather: (type_.source_extent, received[type_.gather])}
        if type_.split is not None:
            shards[type_.split] = (received[type_.split], sent[type_.split])
        for dim, (shard, extent) in shards.items():
            if shard != ceil_div(extent, ranks):
                raise VerifyException(
                    f"'{self.name}' op {dim} = {extent} over {ranks} ranks is "
                    f"{ceil_div(extent, ranks)} each, got {shard}"
                )

    def verify_input(self) -> None:
        """Check that an input can be the channel's memory, and has no other readers."""
        value, type_ = self.input, self.type
        if value is None:
            return
        if type_.mode is not ChannelMode.PULL or value.type != type_.sent:
            raise VerifyException(
                f"'{self.name}' op of a {value.type}: it has to be a pull channel that "
                "carries this"
            )
        if not isinstance(value, BlockArgument) or value.owner is not self.parent:
            raise VerifyException(
                f"'{self.name}' op is of what is no input of its program; stage it"
            )
        if value.has_more_than_one_use():
            raise VerifyException(
                f"'{self.name}' op is of an input that others read, who find it nowhere"
                " else; stage it"
            )


def _group_properties(
    mesh: str, axes: Sequence[str], **more: Attribute | None
) -> dict[str, Attribute | None]:
    return {
        "mesh": SymbolRefAttr(mesh),
        "axes": ArrayAttr(StringAttr(axis) for axis in axes),
        **more,
    }


@irdl_op_definition
class ChannelOp(_GroupOp):
    """
    A channel between the ranks along `axes`; lives as long as the program.

    Along axes inside a GPU it is one between programs of a launch, which share memory.

    A message has a flag for each block: `blocks` cuts dimensions of the message; a
    factor f makes blocks of ceil(extent / f) elements. Without loops, a message is one
    block, as an input is.

    ```mlir
    %ch = dataflow.channel on @h200x4 ["rank"] blocks [M = 4]
        : !dataflow.channel<push gather K : tensor<..> -> tensor<..>>
    %ch = dataflow.channel of %a on @h200x4 ["rank"] blocks []
        : !dataflow.channel<pull gather K : tensor<..> -> tensor<..>>, tensor<..>
    ```
    """

    name = "dataflow.channel"
    blocks = prop_def(ArrayAttr[LoopAttr])
    custom_directives = (LoopList,)
    traits = traits_def(MemoryAllocEffect(), ChannelMesh())
    assembly_format = (
        "(`of` $input^)? `on` $mesh $axes `blocks` custom<LoopList>($blocks) attr-dict "
        "`:` type($result) (`,` type($input)^)?"
    )

    def __init__(
        self,
        mesh: str,
        axes: Sequence[str],
        blocks: Mapping[str, int],
        type: ChannelType,
        input: SSAValue | None = None,
    ):
        loops = ArrayAttr(LoopAttr(dim, factor) for dim, factor in blocks.items())
        super().__init__(
            operands=[input],
            result_types=[type],
            properties=_group_properties(mesh, axes, blocks=loops),
        )

    def verify_(self) -> None:
        verify_blocks(self, self.blocks, self.type.message)
        self.verify_input()
        if self.input is not None and self.blocks.data:
            raise VerifyException(
                f"'{self.name}' op is of an input, which is there as a whole; cut no "
                "blocks"
            )


def verify_blocks(op: Operation, blocks: ArrayAttr[LoopAttr], type_: Attribute) -> None:
    """Check that `blocks` cuts each dimension of a type at most once, evenly."""
    extents = extents_of(type_)
    dims = [loop.dim for loop in blocks]
    for loop in blocks:
        if loop.dim not in extents:
            raise VerifyException(
                f"'{op.name}' op cuts blocks along {loop.dim}, which {type_} "
                "does not have"
            )
        if dims.count(loop.dim) > 1:
            raise VerifyException(f"'{op.name}' op cuts blocks along {loop.dim} twice")
        extent = extents[loop.dim]
        size = ceil_div(extent, loop.factor)
        if ceil_div(extent, size) != loop.factor:
            raise VerifyException(
                f"'{op.name}' op cannot cut {loop.dim} = {extent} into {loop.factor} "
                f"blocks of {size}"
            )


@irdl_op_definition
class ReceiveBufferOp(_GroupOp):
    """
    The symmetric memory of a channel, with `slots` slots, the same on every rank.

    A slot of a push channel has a message from every rank, one of a pull channel the
    rank's own value. A launch uses slot epoch mod `slots`: a rank may be one launch
    ahead of another, and with two slots it does not overwrite what others still read.
    Before launch e the caller writes an input to the slot of e. Programs of one GPU
    share the memory of their group, of which no launch is ahead: one slot is enough.

    ```mlir
    %recv = dataflow.receive_buffer slots 2 on @h200x4 ["rank"] : !dataflow.channel<..>
    %recv = dataflow.receive_buffer of %a slots 2 on @h200x4 ["rank"]
        : !dataflow.channel<pull ..>, tensor<..>
    ```
    """

    name = "dataflow.receive_buffer"
    slots = prop_def(IntegerAttr[I64])
    traits = traits_def(MemoryAllocEffect(), ChannelMesh())
    assembly_format = (
        "(`of` $input^)? `slots` $slots `on` $mesh $axes attr-dict `:` type($result) "
        "(`,` type($input)^)?"
    )

    def __init__(
        self,
        slots: int,
        mesh: str,
        axes: Sequence[str],
        type: ChannelType,
        input: SSAValue | None = None,
    ):
        super().__init__(
            operands=[input],
            result_types=[type],
            properties=_group_properties(mesh, axes, slots=IntegerAttr(slots, i64)),
        )

    def verify_(self) -> None:
        self.verify_input()
        if self.slots.value.data < 1:
            raise VerifyException(f"'{self.name}' op has at least one slot")


def program_value(value: SSAValue) -> SSAValue:
    """
    Return the program's value that is passed as a kernel's block argument.

    Any other value is returned as it is. For a channel this is the `dataflow.channel`
    or `dataflow.receive_buffer`, for flags the `dataflow.flags`.
    """
    while isinstance(value, BlockArgument):
        kernel = value.owner.parent_op()
        if kernel is None or value.index >= len(kernel.operands):
            return value
        value = kernel.operands[value.index]
    return value


def channel_op(channel: SSAValue) -> ChannelOp | ReceiveBufferOp:
    """Return the op of the program that declares a channel, or its receive buffer."""
    owner = program_value(channel).owner
    assert isinstance(owner, ChannelOp | ReceiveBufferOp)
    return owner


def input_of(channel: SSAValue) -> SSAValue | None:
    """
    Return the input of the program that is the memory of a channel or receive buffer,
    None if there is none.
    """
    owner = program_value(channel).owner
    return owner.input if isinstance(owner, ChannelOp | ReceiveBufferOp) else None
