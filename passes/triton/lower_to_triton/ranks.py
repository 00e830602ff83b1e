"""
The parameters, epochs and slots of a kernel of `lower-to-triton` for several ranks.

Kernels that run on several ranks first compute their rank id
(`tl.rank_and_program_id`), and the symmetric address of every pointer
(`tl.symmetric_address`). The launch grid has one axis, so that one launch can have the
programs of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from comet.dialects import tl
from comet.dialects.blocks import terminator_of
from comet.dialects.tl.remote import BASES, FLAG
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.triton.lower_to_triton.offsets import Constexprs, Prologue

WORLD = "WORLD"
"""The constexpr that holds the number of ranks."""
HEAP_BASES = "heap_bases"
"""The parameter with the address of the symmetric heap of each rank."""
CTAS = "CTAS"
"""The constexpr that holds the number of programs that exchange."""


@dataclass
class SharedParameters:
    """Values that all exchanges of a kernel use: its epoch, the cache modifier."""

    kernel: tl.KernelOp
    home: Prologue
    symmetric_address: Callable[[SSAValue], SSAValue]
    """Returns the pointer to this rank's copy of a parameter."""
    _cache: SSAValue | None = None
    _epoch: SSAValue | None = None
    _counters: SSAValue | None = None
    _slots: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    _awaited: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])

    @property
    def counts_launches(self) -> bool:
        """Whether the kernel has an epoch, and so the parameter `counters_ptr`."""
        return self._counters is not None

    def cache(self) -> SSAValue:
        """Return the cache modifier of stores that other programs wait for."""
        if self._cache is None:
            self._cache = write_through(self.kernel)
        return self._cache

    def epoch(self) -> SSAValue:
        """Return the number of this launch."""
        if self._epoch is None:
            pointer = add_parameter(self.kernel, FLAG, "counters_ptr")
            self._counters = self.symmetric_address(pointer)
            self._epoch = self.home.insert(tl.NextEpochOp(self._counters), "epoch")
        return self._epoch

    def awaited(self, arrivals: int) -> SSAValue:
        """Return the value of a flag that gets `arrivals` signals in each launch."""
        if arrivals == 1:
            return self.epoch()
        if arrivals not in self._awaited:
            count = self.home.integer(arrivals)
            product = tl.BinaryOp(BinaryKind.MUL, self.epoch(), count)
            self._awaited[arrivals] = self.home.insert(product, "awaited")
        return self._awaited[arrivals]

    def slot(self, slots: int) -> SSAValue:
        """Return the slot of a receive buffer that this launch uses."""
        if slots not in self._slots:
            count = self.home.integer(slots)
            slot = tl.BinaryOp(BinaryKind.MOD, self.epoch(), count)
            self._slots[slots] = self.home.insert(slot, "slot")
        return self._slots[slots]

    def finish(self, programs: int) -> None:
        """End the kernel: the last of its `programs` to arrive publishes the epoch."""
        if self._counters is None or self._epoch is None:
            return
        block = self.kernel.body.block
        count = tl.ConstantOp.of(programs, i32)
        finish = tl.FinishEpochOp(self._counters, self._epoch, count.result)
        block.insert_ops_before([count, finish], terminator_of(block))


@dataclass
class RankParameters:
    """
    The ids of a program among those that exchange: all ranks, or a group of programs.

    `rank_parameters` makes them for ranks, `group_parameters` for the programs of a
    group, which share the memory of one GPU.
    """

    world: int
    home: Prologue
    constexprs: Constexprs
    rank: SSAValue
    """The rank that the program works for, or its number in the group."""
    program: SSAValue
    """The number of the program among those of its rank, or of its group's."""
    heap: tuple[SSAValue, SSAValue] | None
    """The heaps' addresses, and PROGRAMS; None where all share one memory."""
    shared: SharedParameters
    size_name: str = WORLD
    """The constexpr with the number of ranks, or of programs of the group."""
    _is_root: SSAValue | None = None

    @property
    def world_size(self) -> SSAValue:
        """The number of ranks, a constexpr."""
        return self.constexprs.named(self.size_name, self.world)

    @property
    def bases(self) -> SSAValue:
        """The addresses of the ranks' heaps; only where there are any."""
        assert self.heap is not None
        return self.heap[0]

    @property
    def shares_memory(self) -> bool:
        """Whether these are programs of one GPU."""
        return self.heap is None

    def is_root(self) -> SSAValue:
        """Return whether this is the first program of a group."""
        if self._is_root is None:
            zero = self.home.integer(0)
            is_first = tl.CmpOp(CompareKind.EQ, self.rank, zero)
            self._is_root = self.home.insert(is_first, "is_root")
        return self._is_root


def add_parameter(kernel: tl.KernelOp, type: Attribute, name: str) -> SSAValue:
    """Add a parameter to a kernel."""
    block = kernel.body.block
    argument = block.insert_arg(type, len(block.args))
    argument.name_hint = name
    return argument


def write_through(kernel: tl.KernelOp) -> SSAValue:
    """Add the parameter that says how stores which others read treat caches."""
    return add_parameter(kernel, tl.CacheModifierType(), "WT")


def rank_parameters(
    kernel: tl.KernelOp,
    world: int,
    home: Prologue,
    constexprs: Constexprs,
    first: int | None,
) -> RankParameters:
    """
    Add the parameters of a kernel that runs on `world` ranks, and the ids.

    Only the `first` programs of a rank are waited for by others, None if all may be.
    """
    rank = add_parameter(kernel, i32, "rank")
    bases = add_parameter(kernel, BASES, HEAP_BASES)
    programs = add_parameter(kernel, tl.ProgramsType(), "PROGRAMS")
    ids = tl.RankAndProgramIdOp(rank, programs, first)
    home.insert(ids, "rank")
    ids.program.name_hint = "pid"
    heap = bases, programs

    def symmetric_address(pointer: SSAValue) -> SSAValue:
        op = tl.SymmetricAddressOp(pointer, ids.rank_id, *heap)
        return home.insert(op, pointer.name_hint)

    shared = SharedParameters(kernel, home, symmetric_address)
    return RankParameters(
        world, home, constexprs, ids.rank_id, ids.program, heap, shared
    )


def group_parameters(
    kernel: tl.KernelOp,
    size: int,
    home: Prologue,
    constexprs: Constexprs,
    ranks: RankParameters | None,
) -> RankParameters:
    """
    Add the ids of a program in a kernel whose programs exchange in groups of `size`.

    The programs of a group follow each other, so that they start one after the other.
    With `ranks`, they are among the programs of one rank.
    """
    count = constexprs.named(CTAS, size)
    if ranks is None:
        program = home.insert(tl.ProgramIdOp(0), "program")
    else:
        program = ranks.program
    cta = home.binary(BinaryKind.MOD, program, count, "cta")
    group = home.binary(BinaryKind.FLOORDIV, program, count, "pid")
    shared = SharedParameters(kernel, home, lambda pointer: pointer)
    if ranks is not None:
        ranks.program.name_hint, shared = "program", ranks.shared
    return RankParameters(size, home, constexprs, cta, group, None, shared, CTAS)
