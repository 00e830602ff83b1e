"""
The ops of kernels on channels: push, stage, signal, wait, read, pull.

These operations are in a kernel, next to its node on the launch grid, and act at the
node's border: a tile is pushed when it is computed, and waited for before it is loaded.
`place-waits` moves pushes, stages, signals and waits into nodes, to where they act.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    RangeOf,
    RangeVarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
    with_extents,
    with_level,
)
from comet.dialects.dataflow.channel import (
    ChannelMode,
    ChannelType,
)
from comet.dialects.dataflow.flags import (
    KERNEL,
    EpochType,
    FlagScope,
    FlagsType,
    ScopeAttr,
    Semantics,
    SemanticsAttr,
)
from comet.dialects.parents import HasParentNamed
from comet.dialects.schedule.node import group_around

GRID = "schedule.spatial"
NODES = (GRID, "schedule.temporal")
"""The names of the nodes of tile trees."""

VIEWS = RangeVarConstraint("T", RangeOf(base(TensorType)))
"""The types of the operands and results of a wait."""


class _OnChannel(IRDLOperation, ABC):
    """An op on a channel; it has an `epoch` once channels are lowered."""

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
    """
    Produces a value for a channel.

    In a kernel it takes the result of a node. In a node it takes a tile of that, and
    returns what it has stored, at the level of the channel.
    """

    traits = traits_def(HasParentNamed((KERNEL, *NODES)))

    value = operand_def(base(TensorType))
    stored = opt_result_def(base(TensorType))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `to` $channel (`epoch` $epoch^)? attr-dict `:` type($value) `,` "
        "type($channel) (`->` type($stored)^)?"
    )

    def __init__(
        self,
        value: SSAValue,
        channel: SSAValue,
        epoch: SSAValue | None = None,
        stored: Attribute | None = None,
    ):
        # Fields of a subclass come before those of its base.
        super().__init__(operands=[value, channel, epoch], result_types=[stored])

    def verify_value(self) -> None:
        """Raise `VerifyException` unless the value is what the channel transfers."""
        sent, parent = self.channel_type.sent, self.parent_op()
        in_node = parent is not None and parent.name in NODES
        if (self.stored is not None) != in_node:
            raise VerifyException(
                f"'{self.name}' op returns what it has stored in a node, and only there"
            )
        if self.stored is None:
            if self.value.type != sent:
                raise VerifyException(
                    f"'{self.name}' op the channel transfers {sent}, not "
                    f"{self.value.type}"
                )
        elif with_level(self.value.type, level_of(sent)) != self.stored.type:
            raise VerifyException(
                f"'{self.name}' op stores {self.value.type} at {level_of(sent)}, where "
                f"the channel is, not as {self.stored.type}"
            )
        elif _kind(self.stored) != _kind(sent):
            raise VerifyException(
                f"'{self.name}' op the channel transfers {sent}, of which "
                f"{self.value.type} is no tile"
            )


def _kind(value: SSAValue | Attribute) -> tuple[object, ...]:
    """Return the dimension names and the element type, equal for a tile and a value."""
    return (*names_of(value), element_type_of(value))


@irdl_op_definition
class PushOp(_Producer):
    """
    Store every tile of a value to all receive buffers as soon as it is computed.

    With `root`, the first program of a group does so for all of them, which have the
    same tile.

    ```mlir
    dataflow.push %x to %ch : tensor<..>, !dataflow.channel<push ..>
    %s = dataflow.push %t to %ch epoch %e
        : tensor<..>, !dataflow.channel<push ..> -> tensor<..>
    %s = dataflow.push root %t to %ch epoch %e
        : tensor<..>, !dataflow.channel<push ..> -> tensor<..>
    ```
    """

    name = "dataflow.push"

    root = opt_prop_def(UnitAttr)
    assembly_format = (
        "(`root` $root^)? $value `to` $channel (`epoch` $epoch^)? attr-dict `:` "
        "type($value) `,` type($channel) (`->` type($stored)^)?"
    )

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PUSH)
        self.verify_value()
        _verify_root(self)


@irdl_op_definition
class StageOp(_Producer):
    """
    Store every tile of a value to the own symmetric memory, from which peers load it.

    ```mlir
    dataflow.stage %x to %ch : tensor<..>, !dataflow.channel<pull ..>
    ```
    """

    name = "dataflow.stage"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PULL)
        self.verify_value()


class _Consumer(_OnChannel, ABC):
    """Consumes what all ranks sent to a channel."""

    traits = traits_def(HasParentNamed((KERNEL,)))

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
        """Raise `VerifyException` unless the result is what receivers read."""
        if self.result.type != self.channel_type.received:
            raise VerifyException(
                f"'{self.name}' op receivers read {self.channel_type.received}, not "
                f"{self.result.type}"
            )


@irdl_op_definition
class ReadOp(_Consumer):
    """
    The contents of this rank's receive buffer, loaded tile by tile.

    ```mlir
    %y = dataflow.read %ch : !dataflow.channel<push ..> -> tensor<..>
    ```
    """

    name = "dataflow.read"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PUSH)
        self.verify_result()


@irdl_op_definition
class ReadTileOp(_OnChannel):
    """
    In a node: the tiles that the programs of the group have stored to a channel.

    `stored` is this program's own tile of them, which it has pushed before.

    ```mlir
    %y = dataflow.read_tile %ch of %s epoch %epoch
        : !dataflow.channel<push ..>, tensor<..> -> tensor<..>
    ```
    """

    name = "dataflow.read_tile"
    traits = traits_def(HasParentNamed(NODES))

    stored = operand_def(base(TensorType))
    result = result_def(base(TensorType))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$channel `of` $stored (`epoch` $epoch^)? attr-dict `:` type($channel) `,` "
        "type($stored) `->` type($result)"
    )

    def __init__(
        self, channel: SSAValue, stored: SSAValue, epoch: SSAValue | None = None
    ):
        assert isinstance(channel.type, ChannelType)
        received = with_extents(channel.type.received, extents_of(stored))
        super().__init__(operands=[stored, channel, epoch], result_types=[received])

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PUSH)
        type_ = self.channel_type
        if _kind(self.stored) != _kind(type_.sent):
            raise VerifyException(
                f"'{self.name}' op the channel transfers {type_.sent}, of which "
                f"{self.stored.type} is no tile"
            )
        expected = with_extents(type_.received, extents_of(self.stored))
        if self.result.type != expected:
            raise VerifyException(
                f"'{self.name}' op programs read {expected}, not {self.result.type}"
            )


@irdl_op_definition
class PullOp(_Consumer):
    """
    The values that producers keep for this rank, loaded from their memory tile by tile.

    ```mlir
    %y = dataflow.pull %ch : !dataflow.channel<pull ..> -> tensor<..>
    ```
    """

    name = "dataflow.pull"

    def verify_(self) -> None:
        self.verify_mode(ChannelMode.PULL)
        self.verify_result()


class _OnFlags(IRDLOperation, ABC):
    """An op on a channel's flags, which it has once channels are lowered."""

    channel = operand_def(ChannelType)
    flags = opt_operand_def(FlagsType)
    epoch = opt_operand_def(EpochType)
    semantics = opt_prop_def(SemanticsAttr)
    scope = opt_prop_def(ScopeAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def flags_type(self) -> FlagsType:
        """The type of the flags; only for ops that have flags."""
        assert self.flags is not None
        assert isinstance(self.flags.type, FlagsType)
        return self.flags.type

    def verify_lowered(self, **parts: Attribute | None) -> None:
        """Check that the op has everything of the lowered form, or nothing."""
        flags, epoch = self.flags, self.epoch
        lowered = (flags, epoch, self.semantics, self.scope, *parts.values())
        if len({part is None for part in lowered}) > 1:
            names = ", ".join(("an epoch", "semantics", "a scope", *parts))
            raise VerifyException(
                f"'{self.name}' op has flags, {names}, or none of these"
            )


def _verify_root(op: PushOp | SignalOp) -> None:
    """Check that there are programs of a group, the first of which does `op`."""
    if op.root is not None and group_around(op) is None:
        raise VerifyException(
            f"'{op.name}' op root is the first program of a group; write it in a node "
            "over a mesh axis inside a GPU"
        )


@irdl_op_definition
class SignalOp(_OnFlags):
    """
    Signal to receivers, after a tile's stores, that one more tile of its block has
    arrived.

    `covers` lists other channels to which the same programs have stored their tiles:
    the signal covers these, too. In a node it also lists what has been stored. `fence`
    puts the stores of all threads before the release, which one thread does. With
    `root`, the first program of a group signals for all of them.

    ```mlir
    dataflow.signal %ch covers(%other : !dataflow.channel<..>) : !dataflow.channel<..>
    dataflow.signal %recv flags %flags epoch %epoch release system fence
        : !dataflow.channel<..>, !dataflow.flags<..>
    dataflow.signal %recv covers(%other, %s, %t : !dataflow.channel<..>, tensor<..>,
        tensor<..>) flags %flags epoch %epoch release system fence
        : !dataflow.channel<..>, !dataflow.flags<..>
    ```
    """

    name = "dataflow.signal"
    traits = traits_def(HasParentNamed((KERNEL, *NODES)))
    covered = var_operand_def()
    fence = opt_prop_def(UnitAttr)
    root = opt_prop_def(UnitAttr)
    assembly_format = (
        "(`root` $root^)? $channel "
        "(`covers` `(` $covered^ `:` type($covered) `)`)? "
        "(`flags` $flags^ `epoch` $epoch $semantics $scope)? (`fence` $fence^)? "
        "attr-dict `:` type($channel) (`,` type($flags)^)?"
    )

    def __init__(
        self,
        channel: SSAValue,
        flags: SSAValue | None = None,
        epoch: SSAValue | None = None,
        semantics: Semantics = Semantics.RELEASE,
        scope: FlagScope = FlagScope.SYSTEM,
        fence: bool = True,
        covered: Sequence[SSAValue] = (),
        root: UnitAttr | None = None,
    ):
        lowered = flags is not None
        super().__init__(
            operands=[covered, channel, flags, epoch],
            properties={
                "semantics": SemanticsAttr(semantics) if lowered else None,
                "scope": ScopeAttr(scope) if lowered else None,
                "fence": UnitAttr() if lowered and fence else None,
                "root": root,
            },
        )

    @property
    def channels(self) -> tuple[SSAValue, ...]:
        """All channels that the signal covers, the one with the flags first."""
        others = (v for v in self.covered if isinstance(v.type, ChannelType))
        return (self.channel, *others)

    def verify_(self) -> None:
        self.verify_lowered()
        parent = self.parent_op()
        in_node = parent is not None and parent.name in NODES
        loops = parent is not None and parent.name != GRID
        if in_node and loops and group_around(self) is None:
            raise VerifyException(
                f"'{self.name}' op a program signals ranks once, and so in no loop"
            )
        _verify_root(self)
        stored = [v for v in self.covered if not isinstance(v.type, ChannelType)]
        if bool(stored) != in_node:
            raise VerifyException(
                f"'{self.name}' op lists what has been stored in a node, and only there"
            )
        for value in stored:
            if not isinstance(value.type, TensorType):
                raise VerifyException(
                    f"'{self.name}' op covers channels and what has been stored, not "
                    f"{value.type}"
                )
        listed = (self.channel, *self.covered)
        if len(set(listed)) < len(listed):
            raise VerifyException(
                f"'{self.name}' op covers a channel twice; name each once"
            )


@irdl_op_definition
class WaitOp(_OnFlags):
    """
    Wait, before loads of a tile from a source, until all blocks of the tile have
    arrived.

    Lowered, it waits for a flag to reach at least epoch times `arrivals`. In a kernel
    it is for the later reads of the channel. In a node it takes views in memory, and
    returns them for the loads: of one source in a loop over sources, otherwise of all.
    With `own` it takes what other programs of its rank have stored before they
    signalled the channel, and waits only for its own rank.

    ```mlir
    dataflow.wait %ch : !dataflow.channel<..>
    dataflow.wait %recv flags %flags epoch %epoch acquire system arrivals 8
        : !dataflow.channel<..>, !dataflow.flags<..>
    %w = dataflow.wait %recv for(%a : tensor<..>) flags %flags epoch %epoch acquire
        system arrivals 8 : !dataflow.channel<..>, !dataflow.flags<..>
    ```
    """

    name = "dataflow.wait"
    traits = traits_def(HasParentNamed((KERNEL, *NODES)))
    views = var_operand_def(VIEWS)
    own = opt_prop_def(UnitAttr)
    awaited = var_result_def(VIEWS)
    arrivals = opt_prop_def(IntegerAttr[I64])
    assembly_format = (
        "$channel (`own` $own^)? (`for` `(` $views^ `:` type($views) `)`)? (`flags` "
        "$flags^ `epoch` $epoch $semantics $scope `arrivals` $arrivals)? attr-dict `:` "
        "type($channel) (`,` type($flags)^)?"
    )

    def __init__(
        self,
        channel: SSAValue,
        flags: SSAValue | None = None,
        epoch: SSAValue | None = None,
        arrivals: int = 1,
        semantics: Semantics = Semantics.ACQUIRE,
        scope: FlagScope = FlagScope.SYSTEM,
        views: Sequence[SSAValue] = (),
        own: bool = False,
    ):
        lowered = flags is not None
        super().__init__(
            operands=[views, channel, flags, epoch],
            result_types=[[view.type for view in views]],
            properties={
                "own": UnitAttr() if own else None,
                "semantics": SemanticsAttr(semantics) if lowered else None,
                "scope": ScopeAttr(scope) if lowered else None,
                "arrivals": IntegerAttr(arrivals, i64) if lowered else None,
            },
        )

    def verify_(self) -> None:
        self.verify_lowered(arrivals=self.arrivals)
        parent = self.parent_op()
        in_node = parent is not None and parent.name in NODES
        if bool(self.views) != in_node:
            raise VerifyException(
                f"'{self.name}' op takes views in a node, and only there; in a kernel "
                "it is for what is read of its channel"
            )
        if in_node and self.flags is None and group_around(self) is None:
            raise VerifyException(
                f"'{self.name}' op in a node has flags; run lower-channels first"
            )
