"""The channels of a program: how each collective becomes one, by a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow import (
    BarrierOp,
    ChannelOp,
    KernelOp,
    ProgramOp,
    PushOp,
    SignalOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.locality import collective_of
from comet.dialects.dataflow.program import programs_in
from comet.dialects.dataflow.signals import can_cover
from comet.dialects.errors import about
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.dataflow.bsp_to_dataflow.copy_kernel import CopyRules, copy_rules
from comet.passes.dataflow.bsp_to_dataflow.kernel_tiles import apply_tiles, plan_tiles
from comet.passes.dataflow.bsp_to_dataflow.kernels import (
    copy_to_buffer,
    insert_copy,
    insert_copy_into,
    insert_signal_into,
    read_from_channel,
    send_from_producer,
)
from comet.passes.dataflow.bsp_to_dataflow.plan import (
    PATTERN_RULES,
    ChannelConfig,
    ChannelPlan,
    Pattern,
    check_collective,
    collective_kernels,
    describe_sent,
    extents_show_shards,
    input_in_place,
    moved_result,
    obstacle,
    plan_transfer,
)
from comet.passes.dataflow.bsp_to_dataflow.present_pattern import check_present_pattern
from comet.passes.dataflow.kernel_locals import unawaited
from comet.passes.dataflow.kernels import joined, place_barriers
from comet.passes.schedule.plan_string import parse_plan

EVERY = "every"
"""All collectives, in the option `blocks`."""


@dataclass(frozen=True)
class ConnectPass(ModulePass):
    """`bsp-to-dataflow` without options that are left to a search."""

    name = "bsp-to-dataflow"

    pattern: Literal["bsp", "wait", "pull", "push", "fused", "auto"] = "bsp"
    """How producers, collectives and consumers synchronize."""

    blocks: str | None = None
    """How often copy kernels cut what they send: `M=4 K=2`, or `KERNEL: M=4; ..`."""

    persistent: bool | None = None
    """Whether `fused` makes one kernel of a producer and its consumer."""

    tiles: str | None = None
    """
    The sizes of the tiles of kernels, `KERNEL: M=64 N=128; ..`, with or without launch
    numbers; or `auto`.
    """

    inputs: Literal["copied", "symmetric"] = "copied"
    """Whether kernels copy inputs to symmetric memory, or (`pull`) find them there."""

    sources: Literal["each", "all"] | None = None
    """
    How consumers visit what they gather: `each` source after another, the own one
    first, or tiles across `all`, after one wait. Unset, that is all in `bsp`, where
    all has arrived before they start; in other patterns each, or `auto`.
    """

    def __post_init__(self) -> None:
        parse_blocks(self.blocks)
        if self.tiles is not None and self.tiles != "auto":
            parse_plan(self.tiles)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function that is no reference."""
        if programs := self.exchanging(op):
            with about(next(iter(programs))):
                self._connect(programs, attached_system(op))

    def exchanging(self, module: ModuleOp) -> dict[FuncOp, ProgramOp]:
        """
        Return the programs in which ranks exchange values, by their functions.

        Raises PassFailedException for one whose channels have another pattern.
        """
        functions = functions_at(module, self.name, IRLevel.DATAFLOW)
        found = [(func, p) for func in functions for p in programs_in(func)]
        for function, program in found:
            check_present_pattern(function, program, self.pattern)
        return {func: program for func, program in found if collective_kernels(program)}

    def _connect(self, programs: Mapping[FuncOp, ProgramOp], system: SystemOp) -> None:
        """Replace the collectives of programs by channels, as the options say."""
        pattern, blocks = Pattern(self.pattern), parse_blocks(self.blocks)
        if self.persistent and pattern is not Pattern.FUSED:
            raise PassFailedException(
                f"bsp-to-dataflow: persistent does not apply to pattern={pattern}, in "
                "which no kernel sends what it makes; fused and auto apply"
            )
        if self.inputs == "symmetric":
            check_symmetric(programs.values(), pattern)
        config = ChannelConfig(
            pattern,
            copy_rules(system),
            bool(self.persistent),
            self.inputs == "symmetric",
            self._by_source(pattern),
        )
        for function, program in programs.items():
            with about(function):
                if self.tiles is not None:
                    apply_tiles(function, plan_tiles(program, self.tiles), system)
                check_blocks(program, blocks)
                rewrite(program, config, blocks)

    def _by_source(self, pattern: Pattern) -> bool:
        """Whether consumers visit one source after another."""
        if self.sources is not None:
            return self.sources == "each"
        return PATTERN_RULES[pattern].signals


def parse_blocks(text: str | None) -> dict[str, dict[str, int]]:
    """
    Return the factors of copy kernels by the name of the collective's kernel.

    Raises `PassFailedException` that quotes the text that is no factor.
    """
    if text is None:
        return {}
    entries = parse_plan(text if ":" in text else f"{EVERY}: {text}")
    return {entry.name: dict(entry.numbers) for entry in entries}


def check_blocks(program: ProgramOp, blocks: Mapping[str, Mapping[str, int]]) -> None:
    """Raise `PassFailedException` if `blocks` names what the program does not have."""
    kernels = {kernel.sym_name.data: kernel for kernel in collective_kernels(program)}
    for name, factors in blocks.items():
        if name not in (EVERY, *kernels):
            raise PassFailedException(
                f"bsp-to-dataflow: blocks is for @{name}, which is no collective of "
                f"the program; it has {', '.join(f'@{kernel}' for kernel in kernels)}"
            )
        chosen = kernels.values() if name == EVERY else (kernels[name],)
        dims = {dim for kernel in chosen for dim in extents_of(kernel.ins[0])}
        for dim in factors:
            if dim not in dims:
                raise PassFailedException(
                    f"bsp-to-dataflow: blocks cuts {dim}, which nothing that is sent "
                    f"has; there are {', '.join(sorted(dims))}"
                )


def rewrite(
    program: ProgramOp,
    config: ChannelConfig,
    blocks: Mapping[str, Mapping[str, int]],
) -> None:
    """Make every collective of a program a channel."""
    collectives, pattern = collective_kernels(program), config.pattern
    for kernel in collectives:
        check_collective(kernel, pattern)
    if pattern is Pattern.FUSED:
        check_fused(collectives)
    for kernel in collectives:
        _copy_for_others(kernel, config.copies)
        name = kernel.sym_name.data
        factors = {**blocks.get(EVERY, {}), **blocks.get(name, {})}
        connect(program, plan_transfer(kernel, config, factors))
    if config.persistent:
        merge_kernels(program)
    if PATTERN_RULES[pattern].signals:
        merge_signals(program)
        place_barriers(program)


def check_symmetric(programs: Iterable[ProgramOp], pattern: Pattern) -> None:
    """Raise `PassFailedException` if no kernel pulls an input of the caller."""
    if pattern is not Pattern.PULL:
        raise PassFailedException(
            f"bsp-to-dataflow: inputs=symmetric does not apply to pattern={pattern}, "
            "in which no kernel loads inputs from peers; pull and auto apply"
        )
    if not any(has_inputs_in_place(program) for program in programs):
        raise PassFailedException(
            "bsp-to-dataflow: inputs=symmetric does not apply, because nothing that is "
            "gathered is an input of the program that only its collective takes; leave "
            "it out, and kernels keep for peers what they make, or copy it"
        )


def has_inputs_in_place(program: ProgramOp) -> bool:
    """Whether a collective takes an input that can be in symmetric memory."""
    kernels = collective_kernels(program)
    return any(input_in_place(kernel) is not None for kernel in kernels)


def check_fused(collectives: list[KernelOp]) -> None:
    """Raise `PassFailedException` if a kernel cannot send its own results."""
    for kernel in collectives:
        result, collective = moved_result(kernel), collective_of(kernel)
        split = getattr(collective, "split", None)
        if result is None:
            continue
        why = obstacle(result, None if split is None else split.data)
        if why is not None:
            raise PassFailedException(
                "bsp-to-dataflow: pattern=fused does not apply to "
                f"@{kernel.sym_name.data}, because of the kernel that makes "
                f"{describe_sent(kernel)}: {why}; bsp, wait, pull and push apply"
            )


def _copy_for_others(kernel: KernelOp, rules: CopyRules) -> None:
    """
    Copy a collective's result to a plain buffer for the users that read no channel.

    These are users that do not compute, and views that split a dimension, since
    producers store its whole tiles.
    """
    value = kernel.results_[0]
    uses = [use for use in value.uses if not _computes(use) or _splits(_inside(use))]
    if not uses:
        return
    copy = copy_to_buffer(kernel, value, rules)
    for use in uses:
        use.operation.operands[use.index] = copy.results_[0]
    buffer = copy.outs[0].owner
    assert isinstance(buffer, Operation)
    place = _barrier_after(kernel)
    for op in (BarrierOp(local=True), copy, buffer):
        Rewriter.insert_op(op, InsertPoint.after(place))


def _computes(use: Use) -> bool:
    """Whether the user of a value is a kernel, and no collective."""
    kernel = use.operation
    return isinstance(kernel, KernelOp) and collective_of(kernel) is None


def _inside(use: Use) -> SSAValue:
    """Return the block argument for a use in a kernel's body."""
    kernel = use.operation
    assert isinstance(kernel, KernelOp)
    return kernel.body.block.args[use.index]


def _splits(value: SSAValue) -> bool:
    """Whether a view of a value splits a dimension."""
    views = [use.operation for use in value.uses]
    return any(
        isinstance(op, RenameOp) and (op.cut is not None or _splits(op.result))
        for op in views
    )


def _barrier_after(kernel: KernelOp) -> Operation:
    """Return the first barrier of all ranks after a kernel, or insert it."""
    op = kernel.next_op
    while op is not None:
        if isinstance(op, BarrierOp) and op.local is None:
            return op
        op = op.next_op
    barrier = BarrierOp()
    Rewriter.insert_op(barrier, InsertPoint.after(kernel))
    return barrier


def connect(program: ProgramOp, transfer: ChannelPlan) -> None:
    """Replace one collective by a channel between its producer and its consumers."""
    channel = _channel(program, transfer)
    kernel = transfer.kernel
    for use in list(kernel.results_[0].uses):
        assert isinstance(use.operation, KernelOp)
        read_from_channel(use.operation, use.index, channel, transfer)
    consumer = transfer.sending_consumer
    if consumer is not None and transfer.input is not None:
        insert_signal_into(consumer, channel)
    elif consumer is not None:
        insert_copy_into(consumer, transfer, channel)
    elif transfer.producer is None:
        insert_copy(transfer, channel)
    buffer = kernel.outs[0].owner
    assert isinstance(buffer, Operation)
    Rewriter.erase_op(kernel)
    Rewriter.erase_op(buffer)
    if transfer.producer is not None:
        send_from_producer(transfer.producer, transfer, channel)


def _channel(program: ProgramOp, transfer: ChannelPlan) -> SSAValue:
    """Insert the channel of a transfer, after existing ones."""
    collective = transfer.collective
    mesh, axes = collective.mesh.string_value(), collective.axis_names
    channel = dataflow.ChannelOp(
        mesh, axes, transfer.blocks, transfer.type, transfer.input
    )
    name = collective.input.name_hint
    channel.result.name_hint = None if name is None else f"{name}_channel"
    ops = program.body.block.ops
    first = next(op for op in ops if not isinstance(op, dataflow.ChannelOp))
    Rewriter.insert_op(channel, InsertPoint.before(first))
    return channel.result


def merge_kernels(program: ProgramOp) -> None:
    """
    Merge every producer with the kernel that is launched next, if that waits.

    The kernel is persistent. The producer's nodes come first, so its programs do, too:
    no program waits for one that starts later, and any number of resident programs is
    enough.
    """
    first, *others = list(program.kernels())
    for kernel in others:
        first = joined(first, kernel) if can_merge(first, kernel) else kernel


def can_merge(producer: KernelOp, consumer: KernelOp) -> bool:
    """
    Return whether two kernels, launched one after the other, may become one.

    The consumer waits for a channel of the producer, before it reads any other result
    of the producer.
    """
    sent = {program_value(op.channel) for op in _ops(producer, PushOp, StageOp)}
    awaited = {program_value(op.channel) for op in _ops(consumer, WaitOp)}
    early = [v for node in consumer.nodes for v in unawaited(node, producer)]
    pairs = (producer, consumer), (consumer, producer)
    unambiguous = all(extents_show_shards(*pair) for pair in pairs)
    same = _same_global_extents(producer, consumer)
    return bool(sent & awaited) and not early and same and unambiguous


def _ops(
    kernel: KernelOp, *kinds: type[PushOp | StageOp | WaitOp]
) -> Iterator[PushOp | StageOp | WaitOp]:
    return (op for op in kernel.body.block.ops if isinstance(op, kinds))


def _same_global_extents(producer: KernelOp, consumer: KernelOp) -> bool:
    """Whether both have the same unevenly sharded dimensions."""
    first, second = producer.shard_extents, consumer.shard_extents
    return all(first[dim] == second[dim] for dim in first.keys() & second.keys())


@dataclass(frozen=True)
class Coalescing:
    """A signal, and earlier ones of its kernel that it can cover."""

    signal: SignalOp
    covered: tuple[SignalOp, ...]


def merge_signals(program: ProgramOp) -> None:
    """
    Let the last of several signals for the same blocks, in one kernel, cover all.

    Signal coalescing: every program on a launch grid makes a tile of each result of its
    node. One signal after the last store, for one set of flags, can cover all of them.
    """
    for kernel in program.kernels():
        for plan in list(plan_signals(kernel)):
            channels = [op.channel for op in plan.covered]
            merged = SignalOp(plan.signal.channel, covered=channels)
            Rewriter.replace_op(plan.signal, merged)
            for op in plan.covered:
                Rewriter.erase_op(op)


def plan_signals(kernel: KernelOp) -> Iterator[Coalescing]:
    """Yield the signals of a kernel that can become one."""
    signals = [op for op in kernel.body.block.ops if isinstance(op, SignalOp)]
    while signals:
        last = signals.pop()
        covered = tuple(op for op in signals if _covers(last, op))
        signals = [op for op in signals if op not in covered]
        if covered:
            yield Coalescing(last, covered)


def _covers(later: SignalOp, signal: SignalOp) -> bool:
    """Whether `later` can cover the channel of `signal`, block by block."""
    channels = (later.channel, signal.channel)
    covering, channel = (program_value(value).owner for value in channels)
    assert isinstance(covering, ChannelOp)
    assert isinstance(channel, ChannelOp)
    return covering.blocks == channel.blocks and can_cover(later, channel.result)
