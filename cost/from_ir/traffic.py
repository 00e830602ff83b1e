"""
The bytes that a launch plan moves, by memory level and tensor, on one rank.

The kernel model prices their sums; reports show them by tensor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from xdsl.ir import BlockArgument, SSAValue

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.from_ir.memory import tensor_in_memory
from comet.cost.from_ir.program import message_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import tensor_traffic
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound.dims import bytes_of
from comet.dialects.compound.gather import stored_values
from comet.dialects.compound.rename import viewed
from comet.dialects.compound.views import sources
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.channel import program_value
from comet.dialects.dataflow.transfer import PullOp, PushOp, ReadOp, StageOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads, stores


@dataclass(frozen=True)
class Traffic:
    """Bytes by tensor, summed over the kernels of one rank."""

    device: Mapping[str, float]
    """Loaded from device memory and stored there."""
    l2: Mapping[str, float]
    """Loaded through L2 and stored, by all programs."""
    sent: Mapping[str, float]
    """Pushed to all peers."""
    received: Mapping[str, float]
    """Pushed by all peers, and read by a kernel."""
    tensor_bytes: float
    """The bytes of all inputs and results of the program."""


def traffic_of(program: ProgramOp, system: SystemOp) -> Traffic:
    """
    Return the bytes that the kernels of a program move.

    A kernel of a library moves its operand and its result. Raises `CostError` if the
    system has no GPU.
    """
    peers = rank_count(program) - 1
    reader = _Reader(device_of(system), gpu_levels(system), peers)
    for kernel in program.kernels():
        reader.read(kernel)
    tensor_bytes = sum(reader.outside.values())
    return Traffic(reader.device, reader.l2, reader.sent, reader.received, tensor_bytes)


def _sums() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass
class _Reader:
    """Adds up the bytes that kernels move."""

    gpu: Device
    levels: GpuLevels
    peers: int
    device: defaultdict[str, float] = field(default_factory=_sums)
    l2: defaultdict[str, float] = field(default_factory=_sums)
    sent: defaultdict[str, float] = field(default_factory=_sums)
    received: dict[str, float] = field(default_factory=dict[str, float])
    outside: dict[SSAValue, float] = field(default_factory=dict[SSAValue, float])
    """Bytes of the inputs and results of the program."""
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])

    def read(self, kernel: KernelOp) -> None:
        """Add the bytes that a kernel moves."""
        for op in kernel.body.block.ops:
            match op:
                case CollectiveOp():
                    for value in (*op.operands, *op.results):
                        self.device[self._name(value)] += bytes_of(value)
                case PushOp():
                    message = message_bytes(op.channel_type)
                    self.sent[self._name(op.channel)] += self.peers * message
                case ReadOp():
                    peers = self.peers / (1 + self.peers)
                    received = bytes_of(op.channel_type.received)
                    self.received[self._name(op.channel)] = peers * received
                case _:
                    pass
        for node in kernel.nodes:
            summary = summarize(node, self.levels, self.gpu)
            blocks = tile_blocks(node)
            self._read_device(node, summary, blocks)
            self._read_l2(node, summary, blocks)

    def _read_device(
        self, node: SpatialOp, summary: KernelSummary, blocks: Blocks
    ) -> None:
        traffic = tensor_traffic(summary, blocks, self.gpu)
        values = list(dict.fromkeys((*node.ins, *node.outs)))
        for value, moved in zip(values, traffic, strict=False):
            self.device[self._name(value)] += float(moved)
            if _is_outside(source := _source(value)):
                size = float(bytes_of(value))
                self.outside[source] = max(self.outside.get(source, 0.0), size)
        for moved in traffic[len(values) :]:
            self.device["spilled"] += float(moved)

    def _read_l2(self, node: SpatialOp, summary: KernelSummary, blocks: Blocks) -> None:
        programs = summary.programs(blocks)
        nodes = [op for op in node.walk() if isinstance(op, NodeOp)]
        loaded = chain.from_iterable(map(loads, nodes))
        stored = chain.from_iterable(map(stores, nodes))
        for border, moved in chain(
            zip(loaded, summary.moved_by_loads(blocks), strict=True),
            zip(stored, summary.moved_by_stores(blocks), strict=True),
        ):
            name = self._name(tensor_in_memory(border.outer))
            self.l2[name] += float(programs * moved)

    def _name(self, value: SSAValue) -> str:
        """Return a name that no other tensor of the program has."""
        source = _source(value)
        if source not in self.names:
            hint = source.name_hint or "value"
            others = sum(name.split()[0] == hint for name in self.names.values())
            self.names[source] = f"{hint} {others + 1}" if others else hint
        return self.names[source]


def _source(value: SSAValue) -> SSAValue:
    """Return the value or channel of the program that a value of a node stands for."""
    seen, *others = sources(value)
    if others:
        return value
    match seen.owner:
        case ReadOp() | PullOp():
            return program_value(seen.owner.channel)
        case SpatialOp() | CollectiveOp():
            return next(_stored_in(seen), seen)
        case _:
            return program_value(seen)


def _stored_in(result: SSAValue) -> Iterator[SSAValue]:
    """Yield the kernel results and channels that a result of a node is stored to."""
    for use in (use for value in stored_values(result) for use in value.uses):
        op, kernel = use.operation, use.operation.parent_op()
        if isinstance(op, PushOp | StageOp):
            yield program_value(op.channel)
        elif isinstance(kernel, KernelOp) and op is kernel.body.block.last_op:
            yield kernel.results_[use.index]


def _is_outside(source: SSAValue) -> bool:
    """Whether `source` is an input or a result of the program."""
    if isinstance(source, BlockArgument):
        return True
    program = source.owner.parent_op()
    return isinstance(program, ProgramOp) and source in map(viewed, program.yielded)
