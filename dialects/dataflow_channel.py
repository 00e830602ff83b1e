"""
Channels of the dataflow dialect: how one rank's values reach the others, tile by tile.

A `dataflow.channel` is a promise; `lower-channels` makes it a `dataflow.inbox`, which
is symmetric memory, and `dataflow.flags`. The operations on them stand in kernels, next
to the node on the launch grid, and act at its border: a tile is pushed when it is made,
and waited for before it is loaded.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from enum import auto
from math import prod

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i64,
)
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
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.collective_mesh import lookup_mesh, verify_axes
from comet.dialects.compound_dims import element_type_of, extents_of, with_extents
from comet.dialects.schedule_attributes import LoopAttr, LoopRows


class ChannelMode(StrEnum):
    """Where a message waits for its reader."""

    PUSH = auto()
    """In an inbox at the receiver, stored there by the sender."""
    PULL = auto()
    """In the sender's own symmetric memory, from which the receiver loads it."""


@irdl_attr_definition
class ChannelModeAttr(EnumAttribute[ChannelMode], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.mode"


@irdl_attr_definition
class ChannelType(ParametrizedAttribute, TypeAttribute):
    """
    What a channel carries: every rank sends `sent` and sees `received`.

    The senders' values lie side by side along `gather`; a dimension that `sent` lacks
    is new, with one element per sender. Of the dimension `split`, if it is not empty,
    a receiver gets its own share only.

    ```mlir
    !dataflow.channel<"push", "K", "", tensor<64x16xf16, #compound.dims<M, K>>,
                      tensor<64x64xf16, #compound.dims<M, K>>>
    ```
    """

    name = "dataflow.channel"

    mode_name: StringAttr = param_def()
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
            StringAttr(mode.value),
            StringAttr(gather),
            StringAttr(split or ""),
            sent,
            received,
        )

    @property
    def mode(self) -> ChannelMode:
        """Where a message waits for its reader."""
        return ChannelMode(self.mode_name.data)

    @property
    def gather(self) -> str:
        """The dimension along which the senders' values lie side by side."""
        return self.gather_dim.data

    @property
    def split(self) -> str | None:
        """The dimension of which every receiver gets its own share, if there is one."""
        return self.split_dim.data or None

    @property
    def sources(self) -> int:
        """The number of ranks that send, if `sent` lacks the gathered dimension."""
        return extents_of(self.received)[self.gather]

    @property
    def message(self) -> TensorType[Attribute]:
        """What goes from one rank to one other."""
        if self.split is None:
            return self.sent
        share = extents_of(self.received)[self.split]
        message = with_extents(self.sent, {self.split: share})
        assert isinstance(message, TensorType)
        return message

    def verify(self) -> None:
        modes = [mode.value for mode in ChannelMode]
        if self.mode_name.data not in modes:
            raise VerifyException(
                f"channel mode {self.mode_name.data} is one of {', '.join(modes)}"
            )
        if element_type_of(self.sent) != element_type_of(self.received):
            raise VerifyException("a channel keeps the element type")
        sent, received = extents_of(self.sent), extents_of(self.received)
        if self.gather not in received:
            raise VerifyException(
                f"a channel gathers {self.gather}, which {self.received} does not have"
            )
        if self.split is not None and self.split not in received:
            raise VerifyException(
                f"a channel splits {self.split}, which {self.received} does not have"
            )
        moved = {self.gather: 0} | ({self.split: 0} if self.split else {})
        if {**received, **moved} != {**sent, **moved}:
            raise VerifyException(
                f"a channel keeps every dimension but {', '.join(moved)}: {self.sent} "
                f"and {self.received}"
            )


class ChannelMesh(SymbolUserOpInterface):
    """Checks that a channel's mesh exists, and its shares against the group."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, ChannelOp | InboxOp)
        verify_axes(op, lookup_mesh(op, op.mesh.string_value()), op.axis_names)
        op.verify_shares()


class _GroupOp(IRDLOperation, ABC):
    """What a channel and an inbox share: the ranks that talk, and the type."""

    mesh = prop_def(FlatSymbolRefAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    result = result_def(ChannelType)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The mesh axes of the group, major first."""
        return tuple(axis.data for axis in self.axes)

    @property
    def ranks(self) -> int:
        """The number of ranks that talk to each other."""
        return lookup_mesh(self, self.mesh.string_value()).size(self.axis_names)

    @property
    def type(self) -> ChannelType:
        """What the channel carries."""
        assert isinstance(self.result.type, ChannelType)
        return self.result.type

    def verify_shares(self) -> None:
        """Check that shares are ceil(extent / ranks)."""
        type_, ranks = self.type, self.ranks
        sent, received = extents_of(type_.sent), extents_of(type_.received)
        shares = {type_.gather: (sent.get(type_.gather, 1), received[type_.gather])}
        if type_.split is not None:
            shares[type_.split] = (received[type_.split], sent[type_.split])
        for dim, (share, whole) in shares.items():
            if share != -(-whole // ranks):
                raise VerifyException(
                    f"'{self.name}' op {dim} = {whole} over {ranks} ranks is "
                    f"{-(-whole // ranks)} each, got {share}"
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

    A receiver is told of a message block by block: `blocks` cuts the dimensions of the
    sent value; without rows, a message is one block.

    ```mlir
    %ch = dataflow.channel on @h200x4 ["rank"] blocks [M = 4]
        : !dataflow.channel<"push", "K", "", tensor<..>, tensor<..>>
    ```
    """

    name = "dataflow.channel"
    blocks = prop_def(ArrayAttr[LoopAttr])
    custom_directives = (LoopRows,)
    traits = traits_def(MemoryAllocEffect(), ChannelMesh())
    assembly_format = (
        "`on` $mesh $axes `blocks` custom<LoopRows>($blocks) attr-dict `:` "
        "type($result)"
    )

    def __init__(
        self,
        mesh: str,
        axes: Sequence[str],
        blocks: Mapping[str, int],
        type: ChannelType,
    ):
        rows = ArrayAttr(LoopAttr(dim, factor) for dim, factor in blocks.items())
        super().__init__(
            result_types=[type],
            properties=_group_properties(mesh, axes, blocks=rows),
        )

    def verify_(self) -> None:
        verify_blocks(self, self.blocks, self.type)


def verify_blocks(
    op: Operation, blocks: ArrayAttr[LoopAttr], type_: ChannelType
) -> None:
    """Check that `blocks` cuts each dimension of the sent value at most once."""
    extents = extents_of(type_.sent)
    dims = [row.dim for row in blocks]
    for dim in dims:
        if dim not in extents:
            raise VerifyException(
                f"'{op.name}' op cuts blocks along {dim}, which {type_.sent} does not "
                "have"
            )
        if dims.count(dim) > 1:
            raise VerifyException(f"'{op.name}' op cuts blocks along {dim} twice")


@irdl_op_definition
class InboxOp(_GroupOp):
    """
    The symmetric memory of a channel, `slots` times over; the same on every rank.

    A slot of a push channel has a message from every rank, one of a pull channel the
    rank's own value. A launch uses slot epoch mod `slots`: while a rank may be one
    launch ahead of another, two slots keep it from overwriting what is being read.

    ```mlir
    %box = dataflow.inbox slots 2 on @h200x4 ["rank"] : !dataflow.channel<..>
    ```
    """

    name = "dataflow.inbox"
    slots = prop_def(IntegerAttr[I64])
    traits = traits_def(MemoryAllocEffect(), ChannelMesh())
    assembly_format = "`slots` $slots `on` $mesh $axes attr-dict `:` type($result)"

    def __init__(self, slots: int, mesh: str, axes: Sequence[str], type: ChannelType):
        super().__init__(
            result_types=[type],
            properties=_group_properties(mesh, axes, slots=IntegerAttr(slots, i64)),
        )

    def verify_(self) -> None:
        if self.slots.value.data < 1:
            raise VerifyException(f"'{self.name}' op has at least one slot")


@irdl_attr_definition
class FlagsType(ParametrizedAttribute, TypeAttribute):
    """
    Counters that only grow: one for each source and each block of a message.

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
        return (self.sources, *(row.factor for row in self.blocks))

    @property
    def count(self) -> int:
        """The number of counters."""
        return prod(self.shape)


@irdl_op_definition
class FlagsOp(IRDLOperation):
    """
    The flags that tell receivers what has arrived in an inbox.

    Each launch adds to a flag as many ones as it has `writers`: the tiles of its block.

    ```mlir
    %flags = dataflow.flags for %box writers 8
        : !dataflow.channel<..> -> !dataflow.flags<4, [#schedule.loop<M = 4>]>
    ```
    """

    name = "dataflow.flags"
    box = operand_def(ChannelType)
    writers = prop_def(IntegerAttr[I64])
    result = result_def(FlagsType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = (
        "`for` $box `writers` $writers attr-dict `:` type($box) `->` type($result)"
    )

    def __init__(self, box: SSAValue, writers: int, type: FlagsType):
        super().__init__(
            operands=[box],
            result_types=[type],
            properties={"writers": IntegerAttr(writers, i64)},
        )

    def verify_(self) -> None:
        assert isinstance(self.box.type, ChannelType)
        assert isinstance(self.result.type, FlagsType)
        verify_blocks(self, self.result.type.blocks, self.box.type)
        if self.writers.value.data < 1:
            raise VerifyException(f"'{self.name}' op a flag has at least one writer")


@irdl_attr_definition
class EpochType(ParametrizedAttribute, TypeAttribute):
    """The number of a launch, from 1."""

    name = "dataflow.epoch"


@irdl_op_definition
class EpochOp(IRDLOperation):
    """
    The number of this launch of the kernel, which it counts in device memory.

    ```mlir
    %epoch = dataflow.epoch
    ```
    """

    name = "dataflow.epoch"
    result = result_def(EpochType)
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[EpochType()])


class _OnChannel(IRDLOperation, ABC):
    """What works on a channel; `epoch` is there once channels are lowered."""

    channel = operand_def(ChannelType)
    epoch = opt_operand_def(EpochType)

    @property
    def channel_type(self) -> ChannelType:
        """The type of the channel."""
        assert isinstance(self.channel.type, ChannelType)
        return self.channel.type

    def verify_mode(self, mode: ChannelMode) -> None:
        """Raise `VerifyException` unless the channel has this mode."""
        if self.channel_type.mode is not mode:
            raise VerifyException(
                f"'{self.name}' op is for a {mode} channel, this is a "
                f"{self.channel_type.mode} channel"
            )


class _Producer(_OnChannel, ABC):
    """Gives a value to a channel."""

    value = operand_def(base(TensorType))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `to` $channel (`epoch` $epoch^)? attr-dict `:` type($value) `,` "
        "type($channel)"
    )

    def __init__(
        self, value: SSAValue, channel: SSAValue, epoch: SSAValue | None = None
    ):
        super().__init__(operands=[channel, epoch, value])

    def verify_value(self) -> None:
        """Raise `VerifyException` unless the value is what the channel carries."""
        if self.value.type != self.channel_type.sent:
            raise VerifyException(
                f"'{self.name}' op the channel carries {self.channel_type.sent}, not "
                f"{self.value.type}"
            )


@irdl_op_definition
class PushOp(_Producer):
    """
    Store every tile of a value to all receivers' inboxes as soon as it is made.

    ```mlir
    dataflow.push %x to %ch : tensor<..>, !dataflow.channel<"push", ..>
    ```
    """

    name = "dataflow.push"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PUSH)
        self.verify_value()


@irdl_op_definition
class StageOp(_Producer):
    """
    Store every tile of a value to the own symmetric memory, from which peers load it.

    ```mlir
    dataflow.stage %x to %ch : tensor<..>, !dataflow.channel<"pull", ..>
    ```
    """

    name = "dataflow.stage"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PULL)
        self.verify_value()


class _Consumer(_OnChannel, ABC):
    """Sees what all ranks gave to a channel."""

    result = result_def(base(TensorType))
    assembly_format = (
        "$channel (`epoch` $epoch^)? attr-dict `:` type($channel) `->` type($result)"
    )

    def __init__(self, channel: SSAValue, epoch: SSAValue | None = None):
        assert isinstance(channel.type, ChannelType)
        super().__init__(
            operands=[channel, epoch], result_types=[channel.type.received]
        )

    def verify_result(self) -> None:
        """Raise `VerifyException` unless the result is what receivers see."""
        if self.result.type != self.channel_type.received:
            raise VerifyException(
                f"'{self.name}' op receivers see {self.channel_type.received}, not "
                f"{self.result.type}"
            )


@irdl_op_definition
class ReadOp(_Consumer):
    """
    What lies in the own inbox, loaded tile by tile.

    ```mlir
    %y = dataflow.read %ch : !dataflow.channel<"push", ..> -> tensor<..>
    ```
    """

    name = "dataflow.read"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PUSH)
        self.verify_result()


@irdl_op_definition
class PullOp(_Consumer):
    """
    What the senders keep for this rank, loaded from their memory tile by tile.

    ```mlir
    %y = dataflow.pull %ch : !dataflow.channel<"pull", ..> -> tensor<..>
    ```
    """

    name = "dataflow.pull"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PULL)
        self.verify_result()


class Semantics(StrEnum):
    """What an atomic operation on a flag orders."""

    RELAXED = auto()
    ACQUIRE = auto()
    RELEASE = auto()


@irdl_attr_definition
class SemanticsAttr(EnumAttribute[Semantics], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.semantics"


class FlagScope(StrEnum):
    """Who sees an atomic operation on a flag in order."""

    GPU = auto()
    SYSTEM = auto()


@irdl_attr_definition
class ScopeAttr(EnumAttribute[FlagScope], SpacedOpaqueSyntaxAttribute):
    name = "dataflow.scope"


class _OnFlags(IRDLOperation, ABC):
    """Works on a channel's flags; these, and how, are there once it is lowered."""

    channel = operand_def(ChannelType)
    flags = opt_operand_def(FlagsType)
    epoch = opt_operand_def(EpochType)
    semantics = opt_prop_def(SemanticsAttr)
    scope = opt_prop_def(ScopeAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        lowered = (self.flags, self.epoch, self.semantics, self.scope)
        if len({part is None for part in lowered}) > 1:
            raise VerifyException(
                f"'{self.name}' op has flags, an epoch, semantics and a scope, or none "
                "of these"
            )


@irdl_op_definition
class SignalOp(_OnFlags):
    """
    Tell receivers, after a tile's stores, that one more tile of its block is there.

    `fence` makes all threads' stores precede the release, which one thread does.

    ```mlir
    dataflow.signal %ch : !dataflow.channel<..>
    dataflow.signal %box flags %flags epoch %epoch release system fence
        : !dataflow.channel<..>, !dataflow.flags<..>
    ```
    """

    name = "dataflow.signal"
    fence = opt_prop_def(UnitAttr)
    assembly_format = (
        "$channel (`flags` $flags^ `epoch` $epoch $semantics $scope)? "
        "(`fence` $fence^)? attr-dict `:` type($channel) (`,` type($flags)^)?"
    )

    def __init__(
        self,
        channel: SSAValue,
        flags: SSAValue | None = None,
        epoch: SSAValue | None = None,
        semantics: Semantics = Semantics.RELEASE,
        scope: FlagScope = FlagScope.SYSTEM,
        fence: bool = True,
    ):
        lowered = flags is not None
        super().__init__(
            operands=[channel, flags, epoch],
            properties={
                "semantics": SemanticsAttr(semantics) if lowered else None,
                "scope": ScopeAttr(scope) if lowered else None,
                "fence": UnitAttr() if lowered and fence else None,
            },
        )


@irdl_op_definition
class WaitOp(_OnFlags):
    """
    Before a tile's loads of a source: every block that it touches is there.

    Lowered, it waits for a flag to reach at least epoch times `arrivals`.

    ```mlir
    dataflow.wait %ch : !dataflow.channel<..>
    dataflow.wait %box flags %flags epoch %epoch acquire system arrivals 8
        : !dataflow.channel<..>, !dataflow.flags<..>
    ```
    """

    name = "dataflow.wait"
    arrivals = opt_prop_def(IntegerAttr[I64])
    assembly_format = (
        "$channel (`flags` $flags^ `epoch` $epoch $semantics $scope `arrivals` "
        "$arrivals)? attr-dict `:` type($channel) (`,` type($flags)^)?"
    )

    def __init__(
        self,
        channel: SSAValue,
        flags: SSAValue | None = None,
        epoch: SSAValue | None = None,
        arrivals: int = 1,
        semantics: Semantics = Semantics.ACQUIRE,
        scope: FlagScope = FlagScope.SYSTEM,
    ):
        lowered = flags is not None
        super().__init__(
            operands=[channel, flags, epoch],
            properties={
                "semantics": SemanticsAttr(semantics) if lowered else None,
                "scope": ScopeAttr(scope) if lowered else None,
                "arrivals": IntegerAttr(arrivals, i64) if lowered else None,
            },
        )
