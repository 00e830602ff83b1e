"""How `lower-to-triton` writes one kernel: parameters, buffers, channels, its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    IntegerAttr,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import Pure
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.compound import IndexOp, RenameOp
from comet.dialects.compound_dims import element_type_of, extents_of, names_of, tensor
from comet.dialects.dataflow_channel import ChannelType, InboxOp, behind
from comet.dialects.dataflow_flags import (
    EpochOp,
    EpochType,
    FlagScope,
    FlagsOp,
    FlagsType,
    Semantics,
)
from comet.dialects.dataflow_transfer import (
    PullOp,
    PushOp,
    ReadOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule_attributes import LaunchAttr
from comet.dialects.tl_remote import BASES, FLAG
from comet.dialects.tl_types import BinaryKind
from comet.passes.lower_to_triton_blocks import BlockPlan, memory_level, plan_blocks
from comet.passes.lower_to_triton_channels import (
    Channel,
    Flags,
    PushTo,
    Received,
    StageIn,
    signal,
)
from comet.passes.lower_to_triton_grid import Grid, lower_grid
from comet.passes.lower_to_triton_nodes import BodyLowering, describe
from comet.passes.lower_to_triton_ranks import (
    WORLD,
    RankParameters,
    rank_parameters,
)
from comet.passes.lower_to_triton_slices import Constexprs, DimSlice, Prologue
from comet.passes.lower_to_triton_values import Buffer, Push, Scope, row_major

VIEWS = RenameOp | IndexOp
TRANSFERS = EpochOp | WaitOp | ReadOp | PullOp | PushOp | StageOp | SignalOp


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel in Triton, and how it is launched."""

    kernel: tl.KernelOp
    grid: tuple[int, ...]
    scratch: tuple[Attribute, ...]
    """Types of the buffers that only this kernel uses, its last pointers."""
    launch: LaunchAttr
    has_epoch: bool = False
    """Whether two counters follow the pointers."""


def lower_kernel(kernel: dataflow.KernelOp, world: int) -> LoweredKernel:
    """Write one kernel in Triton, for so many ranks."""
    node = _grid_node(kernel)
    _check_types(kernel)
    plan = plan_blocks(node)
    made = tl.KernelOp(kernel.sym_name.data, list(map(_pointer, _pointed(kernel))))
    made.attributes["tl.comment"] = StringAttr(describe(node))
    lowering = _KernelLowering(kernel, made, plan, world)
    grid = lowering.lower(node)
    _erase_unused(made)
    _order_parameters(made, plan)
    return LoweredKernel(
        made,
        tuple(grid),
        tuple(lowering.scratch),
        node.launch or LaunchAttr(),
        lowering.has_epoch,
    )


def _pointed(kernel: dataflow.KernelOp) -> Sequence[SSAValue]:
    return (*kernel.body.block.args, *kernel.results_)


def _pointer(value: SSAValue) -> Attribute:
    """Return the type of the pointer that stands for a value."""
    if isinstance(value.type, FlagsType):
        return FLAG
    if isinstance(value.type, ChannelType):
        return tl.PtrType(element_type_of(value.type.sent))
    return tl.PtrType(element_type_of(value))


class _KernelLowering:
    """Writes the body of one kernel."""

    def __init__(
        self, kernel: dataflow.KernelOp, made: tl.KernelOp, plan: BlockPlan, world: int
    ):
        self._kernel, self._made, self._plan = kernel, made, plan
        self.scratch: list[Attribute] = []
        self._scope = self._kernel_scope(world)
        self._pointers = self._own_pointers()
        self._buffers = self._named_buffers()

    @property
    def has_epoch(self) -> bool:
        """Whether the kernel counts its launches."""
        return self._scope.ranks is not None and self._scope.ranks.counts_launches

    def lower(self, node: SpatialOp) -> list[int]:
        """Write the grid node and what stands around it; return the launch grid."""
        memory = memory_level(node)
        body = BodyLowering(memory, self._allocate, self._names("sources"))
        signals = [op for op in self._kernel.body.block.ops if isinstance(op, SignalOp)]
        owned = (*self._names("sources"), *self._names("destinations"))
        grid = Grid(
            [self._buffers[value] for value in node.ins],
            [self._target(value) for value in node.outs],
            owned if self._scope.ranks is not None else (),
            bool(signals),
        )
        extents = lower_grid(node, self._scope, grid, body)
        for op in signals:
            _check_signal(op)
            flags = self._flags(op.flags, op)
            signal(self._scope, self._channel(op.channel), flags)
        if (ranks := self._scope.ranks) is not None:
            ranks.finish(extents[0])
        return extents

    def _names(self, attribute: str) -> tuple[str, ...]:
        names = self._kernel.sources
        if attribute == "destinations":
            names = self._kernel.destinations
        return () if names is None else tuple(name.data for name in names)

    def _kernel_scope(self, world: int) -> Scope:
        """Return the scope of the body, in which every slice is whole."""
        block = self._made.body.block
        assert block.last_op is not None
        constexprs, prologue = Constexprs(self._made, self._plan), Prologue(block)
        ranks = None
        if world > 1:
            ranks = rank_parameters(self._made, world, prologue, constexprs)
        slices = {
            dim: self._whole(dim, extent, constexprs, prologue, ranks)
            for dim, extent in self._plan.extents.items()
        }
        builder = Builder(InsertPoint.before(block.last_op))
        return Scope(builder, prologue, constexprs, slices, ranks=ranks)

    def _whole(
        self,
        dim: str,
        extent: int,
        constexprs: Constexprs,
        home: Prologue,
        ranks: RankParameters | None,
    ) -> DimSlice:
        """Return the slice that is a whole dimension, or what this rank has of it."""
        block, size = self._plan.block(dim, extent), constexprs.extent(dim)
        whole = DimSlice(dim, extent, block, True, None, size, home, constexprs)
        total = self._shares().get(dim)
        if ranks is None or total is None or total == extent * ranks.world:
            return whole
        name = constexprs.extent_name(dim, total)
        add = home.add
        before = add(tl.BinaryOp(BinaryKind.MUL, ranks.rank, size))
        left = add(tl.BinaryOp(BinaryKind.SUB, constexprs.extent(name), before))
        left = add(tl.BinaryOp(BinaryKind.MIN, left, size))
        zero = add(tl.ConstantOp.of(0, i32))
        stop = add(tl.BinaryOp(BinaryKind.MAX, left, zero), f"stop_{dim.lower()}")
        return replace(whole, full=False, stop=stop, ragged=True)

    def _shares(self) -> dict[str, int]:
        """Return the extent over all ranks of dimensions that ranks share."""
        shares = self._kernel.attributes.get("dataflow.shares")
        if not isinstance(shares, DictionaryAttr):
            return {}
        return {
            dim: extent.value.data
            for dim, extent in shares.data.items()
            if isinstance(extent, IntegerAttr)
        }

    def _own_pointers(self) -> dict[SSAValue, SSAValue]:
        """Name the pointers; return those that this program uses, by value."""
        pointers: dict[SSAValue, SSAValue] = {}
        values = _pointed(self._kernel)
        for value, pointer in zip(values, self._made.body.block.args, strict=False):
            pointer.name_hint = f"{value.name_hint or 'x'}_ptr"
            pointers[value] = self._owned(pointer)
        return pointers

    def _owned(self, pointer: SSAValue) -> SSAValue:
        ranks = self._scope.ranks
        return pointer if ranks is None else ranks.own(pointer)

    def _named_buffers(self) -> dict[SSAValue, Buffer]:
        """Return the memory behind every tensor that enters, leaves or is received."""
        buffers = {
            value: _buffer(value, self._pointers[value])
            for value in _pointed(self._kernel)
            if isinstance(value.type, TensorType)
        }
        waits = {
            op.channel: op
            for op in self._kernel.body.block.ops
            if isinstance(op, WaitOp)
        }
        for op in self._kernel.body.block.ops:
            if isinstance(op, ReadOp | PullOp):
                wait = waits.get(op.channel)
                buffers[op.result] = self._received(op.channel, op.result, wait)
            if isinstance(op, IndexOp):
                buffers[op.result] = _buffer(op.result, None)
            if isinstance(op, RenameOp):
                buffers[op.result] = _viewed(op, buffers[op.input])
        return buffers

    def _received(
        self, channel: SSAValue, value: SSAValue, wait: WaitOp | None
    ) -> Received:
        memory = self._channel(channel)
        dims, extents = names_of(value), tuple(extents_of(value).values())
        flags, arrivals = None, 0
        if wait is not None:
            _check_wait(wait)
            flags = self._flags(wait.flags, wait)
            assert wait.arrivals is not None
            arrivals = wait.arrivals.value.data
        strides = row_major(dims)
        return Received(
            memory.pointer,
            dims,
            extents,
            strides,
            channel=memory,
            flags=flags,
            arrivals=arrivals,
        )

    def _channel(self, value: SSAValue) -> Channel:
        box = behind(value)
        if not isinstance(box.owner, InboxOp):
            raise PassFailedException(
                f"lower-to-triton: kernel @{self._kernel.sym_name.data} uses a channel "
                "without memory; run lower-channels first"
            )
        hint = value.name_hint or "box"
        return Channel(
            box.owner.type, box.owner.slots.value.data, self._pointers[value], hint
        )

    def _flags(self, value: SSAValue | None, op: Operation) -> Flags:
        owner = None if value is None else behind(value).owner
        if value is None or not isinstance(owner, FlagsOp):
            raise PassFailedException(
                f"lower-to-triton: {op.name} in @{self._kernel.sym_name.data} has no "
                "flags; run lower-channels first"
            )
        return Flags(self._pointers[value], owner.type, owner.writers.value.data)

    def _target(self, value: SSAValue) -> Buffer:
        """Return where a result of the grid node goes: to a buffer, to channels."""
        pushes: list[Push] = []
        buffer = Buffer(None, names_of(value), (), row_major(names_of(value)))
        terminator = self._kernel.body.block.last_op
        for use in value.uses:
            op = use.operation
            if op is terminator:
                buffer = self._buffers[self._kernel.results_[use.index]]
            elif isinstance(op, PushOp):
                pushes.append(PushTo(self._channel(op.channel)))
            elif isinstance(op, StageOp):
                pushes.append(StageIn(self._channel(op.channel)))
        return replace(buffer, pushes=tuple(pushes))

    def _allocate(self, value: SSAValue) -> Buffer:
        """Add a pointer to a buffer for all programs' tiles of `value`."""
        element, dims = element_type_of(value), names_of(value)
        block = self._made.body.block
        pointer = block.insert_arg(tl.PtrType(element), len(block.args))
        pointer.name_hint = f"{value.name_hint or 'scratch'}_ptr"
        shape = {dim: self._plan.extents[dim] for dim in dims}
        self.scratch.append(tensor(shape, element))
        return Buffer(
            self._owned(pointer), dims, tuple(shape.values()), row_major(dims)
        )


def _viewed(op: RenameOp, buffer: Buffer) -> Buffer:
    """Return the memory of `buffer` under the names that `op` gives."""
    if op.cut is None:
        return buffer.renamed(op.renaming)
    if buffer.origins or buffer.gathered is not None:
        raise PassFailedException(
            f"lower-to-triton: {op.input.type} comes from other ranks and cannot be "
            "seen in parts; split a dimension that is not gathered"
        )
    return _buffer(op.result, buffer.pointer)


def _buffer(value: SSAValue, pointer: SSAValue | None) -> Buffer:
    dims = names_of(value)
    extents = tuple(extents_of(value).values())
    return Buffer(pointer, dims, extents, row_major(dims))


def _check_signal(op: SignalOp) -> None:
    """The shim has one signal: a fence, then a release that every rank sees."""
    kinds = (op.semantics and op.semantics.data, op.scope and op.scope.data)
    if kinds != (Semantics.RELEASE, FlagScope.SYSTEM) or op.fence is None:
        raise PassFailedException(
            "lower-to-triton: dataflow.signal is a release of system scope behind a "
            "fence; verify-sync says what else would break"
        )


def _check_wait(op: WaitOp) -> None:
    """The shim has one wait: an acquire of what any rank released."""
    kinds = (op.semantics and op.semantics.data, op.scope and op.scope.data)
    if kinds != (Semantics.ACQUIRE, FlagScope.SYSTEM):
        raise PassFailedException(
            "lower-to-triton: dataflow.wait is an acquire of system scope; verify-sync "
            "says what else would break"
        )


def _grid_node(kernel: dataflow.KernelOp) -> SpatialOp:
    ops = [op for op in kernel.body.block.ops if not isinstance(op, VIEWS | TRANSFERS)]
    node = ops[0]
    if len(ops) > 2 or not isinstance(node, SpatialOp) or node.mesh_name is not None:
        raise PassFailedException(
            f"lower-to-triton: kernel @{kernel.sym_name.data} is not one node on the "
            "launch grid"
        )
    return node


def _check_types(kernel: dataflow.KernelOp) -> None:
    for op in kernel.walk():
        for value in op.results:
            if isinstance(value.type, EpochType):
                continue
            element = element_type_of(value)
            if not isinstance(element, Float16Type | BFloat16Type | Float32Type):
                raise PassFailedException(
                    f"lower-to-triton: {op.name} makes {value.type}; Triton kernels "
                    "take elements of f16, bf16 and f32"
                )


def _erase_unused(kernel: tl.KernelOp) -> None:
    """Drop values that nothing uses: ends of slices that need no mask."""
    for op in list(kernel.body.walk(reverse=True)):
        if op.has_trait(Pure) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()


def _order_parameters(kernel: tl.KernelOp, plan: BlockPlan) -> None:
    """
    Put pointers first, then ranks, extents, block sizes, and what the runtime says.

    What is not used is dropped.
    """
    old = kernel.body.block
    dims = list(plan.extents)

    def place(argument: SSAValue) -> tuple[int, int, str]:
        name = argument.name_hint or ""
        if argument.type in (BASES, i32):
            return (1, int(argument.type == BASES), "")
        if isinstance(argument.type, tl.PtrType):
            return (0, int(name == "counters_ptr"), "")
        if name == WORLD or not isinstance(argument.type, tl.ConstexprType):
            return (4, int(isinstance(argument.type, tl.ProgramsType)), name)
        stem = name.split("_")[0]
        return (2, dims.index(stem), name) if stem in dims else (3, 0, name)

    arguments = sorted(old.args, key=place)
    arguments = [
        arg for arg in arguments if arg.uses or isinstance(arg.type, tl.PtrType)
    ]
    block = Block(arg_types=[argument.type for argument in arguments])
    for argument, new in zip(arguments, block.args, strict=True):
        new.name_hint = argument.name_hint
        argument.replace_all_uses_with(new)
    for op in list(old.ops):
        op.detach()
        block.add_op(op)
    kernel.body.detach_block(old)
    kernel.body.add_block(block)
