"""How `lower-to-triton` writes one kernel: its parameters, the nodes of its body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    StringAttr,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from comet.dialects import dataflow, tl
from comet.dialects.blocks import block_taking
from comet.dialects.compound import ScatterAddOp
from comet.dialects.compound.dims import element_type_of
from comet.dialects.dataflow.arrival import ArriveOp
from comet.dialects.dataflow.channel import input_of
from comet.dialects.dataflow.flags import EpochOp, EpochType
from comet.dialects.dataflow.launch_axes import group_size
from comet.dialects.dataflow.locality import launched_ranks
from comet.dialects.dataflow.merging import (
    arrivals_in,
    arriving_node,
    launched_nodes,
    merging_node,
)
from comet.dialects.dataflow.persistence import loads_tiles_ahead, unfit_for_tiles
from comet.dialects.dataflow.shares import SharesOp, shares_of
from comet.dialects.dataflow.transfer import SignalOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp, SpatialOp
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.dataflow.place_waits import is_at_border
from comet.passes.triton.lower_to_triton.arrivals import check_arrival, lower_arrival
from comet.passes.triton.lower_to_triton.grid import lower_grid
from comet.passes.triton.lower_to_triton.loops import describe
from comet.passes.triton.lower_to_triton.memory import (
    VIEWS,
    KernelMemory,
    pointed,
    pointer_type,
)
from comet.passes.triton.lower_to_triton.offsets import Constexprs, DimSlice, Prologue
from comet.passes.triton.lower_to_triton.ranks import (
    HEAP_BASES,
    WORLD,
    RankParameters,
    group_parameters,
    rank_parameters,
)
from comet.passes.triton.lower_to_triton.sends import lower_signal
from comet.passes.triton.lower_to_triton.shares import check_shares, lower_shares
from comet.passes.triton.lower_to_triton.values import Scope, builder_in, scope_in
from comet.passes.triton.lower_to_triton.workarounds import (
    make_branch_ends_differ,
    permute_before_loops,
    store_last_first,
)
from comet.passes.triton.pad_blocks import kernel_extents, memory_level
from comet.passes.triton.slices import (
    Slice,
    blocks_of,
    rank_loops,
    uncut_slices,
)

WRITABLE = (Float16Type(), BFloat16Type(), Float32Type(), i1, i8, i32, i64)
"""The element types of tiles."""
ELEMENTS = "Triton kernels take elements of f16, bf16, f32, i32, i64, i8 and i1"
"""The text of errors about other types."""
BESIDE_NODES = (EpochOp, SignalOp, ArriveOp, ScatterAddOp, SharesOp)
"""Ops of a kernel that programs do before or after its nodes."""


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel in Triton, and how it is launched."""

    kernel: tl.KernelOp
    grid: tuple[int, ...]
    scratch: tuple[Attribute, ...]
    """Types of the buffers that only this kernel uses: those of its last pointers."""
    launch: LaunchAttr
    takes_rank: bool
    """Whether the number of the rank follows the pointers."""
    takes_heaps: bool
    """Whether the addresses of all ranks' heaps follow the number of the rank."""
    has_epoch: bool
    """Whether two counters follow the pointers."""
    coresident: int
    """How many programs have to run at the same time, 0 if none have to."""


def lower_kernel(kernel: dataflow.KernelOp) -> LoweredKernel:
    """Write one kernel in Triton."""
    world = launched_ranks(kernel)
    if (value := unwritable(kernel)) is not None:
        raise OpError(
            kernel,
            f"lower-to-triton: dataflow.kernel makes {value.type}; {ELEMENTS}; "
            "take one of these",
        )
    nodes = _grid_nodes(kernel)
    reason = unfit_for_tiles(kernel) if any(map(_is_persistent, nodes)) else None
    if reason is not None:
        raise OpError(kernel, f"lower-to-triton: {reason}")
    types = [pointer_type(value) for value in pointed(kernel)]
    tl_kernel = tl.KernelOp(kernel.sym_name.data, types)
    comment = "; ".join(describe(node) for node in nodes)
    tl_kernel.attributes[tl.COMMENT] = StringAttr(comment)
    lowering = _KernelLowering(kernel, tl_kernel, nodes, world)
    grid = lowering.lower()
    _erase_unused(tl_kernel)
    permute_before_loops(tl_kernel)
    store_last_first(tl_kernel)
    _order_parameters(tl_kernel, list(lowering.extents), lowering.has_epoch)
    return LoweredKernel(
        tl_kernel,
        tuple(grid),
        tuple(lowering.memory.scratch),
        kernel.launch or LaunchAttr(),
        any(argument.type == i32 for argument in tl_kernel.body.block.args),
        world > 1,
        lowering.has_epoch,
        0 if kernel.coresident is None else kernel.coresident.value.data,
    )


def _grid_nodes(kernel: dataflow.KernelOp) -> list[SpatialOp]:
    """
    Return the nodes of a kernel, in order: its first programs do the first one.

    Raises `PassFailedException` for other ops that programs would run.
    """
    name, nodes = kernel.sym_name.data, list[SpatialOp]()
    for op in list(kernel.body.block.ops)[:-1]:
        if isinstance(op, SpatialOp) and op.is_grid:
            nodes.append(op)
        elif is_at_border(op):
            raise OpError(
                op,
                f"lower-to-triton: no node of kernel @{name} does its {op.name}; "
                "verify-sync says which order of stores, signals and loads is right",
            )
        elif VIEWS.find(op) is None and not isinstance(op, BESIDE_NODES):
            raise OpError(
                op,
                f"lower-to-triton: kernel @{name} has {op.name} outside of nodes on "
                "the launch grid; put it into one",
            )
    if not nodes:
        raise OpError(
            kernel,
            f"lower-to-triton: kernel @{name} has no node on the launch grid; remove "
            "the kernel, or write what it computes as one",
        )
    return nodes


def grid_of(node: SpatialOp) -> tuple[int, ...]:
    """Return the extents of the launch grid of a node, as `map-grid` has written it."""
    assert node.programs is not None
    return node.programs.grid


def _is_persistent(node: SpatialOp) -> bool:
    """Whether a program does several tiles of a node, one after another."""
    return node.programs is not None and node.programs.persistent > 0


@dataclass(frozen=True)
class ProgramRange:
    """A range of the programs of a kernel, and the block that has their ops."""

    block: Block
    home: Prologue
    number: SSAValue
    """The number of a program, from 0."""

    def divided(self, count: int) -> tuple[ProgramRange, ProgramRange]:
        """Insert a branch; return the first `count` programs, and the others."""
        first = self.home.integer(count)
        branch = tl.IfOp(self.home.compare(CompareKind.LT, self.number, first))
        builder_in(self.block).insert(branch)
        then, otherwise = branch.then.block, branch.otherwise.block
        home = Prologue(otherwise)
        rest = home.binary(BinaryKind.SUB, self.number, first, "number")
        first_range = ProgramRange(then, Prologue(then), self.number)
        return first_range, ProgramRange(otherwise, home, rest)

    def for_each_tile(
        self, tiles: int, programs: int, stages: int | None
    ) -> ProgramRange:
        """
        Insert a loop in which each of `programs` programs does several tiles.

        Return its body, where the number is that of a tile. Program p does the tiles p,
        p + programs, and so on: programs that run at the same time have neighbours.
        `stages`: those of a software pipeline that loads later tiles.
        """
        insert = builder_in(self.block).insert
        stop, step = (insert(tl.ConstantOp.of(n, i32)) for n in (tiles, programs))
        loop = insert(tl.ForOp(self.number, stop, step, [], num_stages=stages))
        number = loop.body.block.args[0]
        number.name_hint = "tile"
        return ProgramRange(loop.body.block, Prologue(loop.body.block), number)


def _awaited(kernel: dataflow.KernelOp, nodes: Sequence[SpatialOp]) -> int | None:
    """
    Return the number of programs that other programs may wait for: a kernel's first.

    These are the programs of all nodes but the last, and the program that signals the
    inputs. None if groups of programs exchange, as any program may be waited for then.
    """
    if group_size(nodes[0]) > 1:
        return None
    signalling = 1 if _signals_of_inputs(kernel) else 0
    return signalling + sum(prod(grid_of(node)) for node in nodes[:-1])


def _signals_of_inputs(kernel: dataflow.KernelOp) -> list[SignalOp]:
    """Return the signals of the inputs that the caller writes to symmetric memory."""
    signals = (op for op in kernel.body.block.ops if isinstance(op, SignalOp))
    return [op for op in signals if input_of(op.channel) is not None]


class _KernelLowering:
    """Writes the body of one kernel."""

    def __init__(
        self,
        kernel: dataflow.KernelOp,
        tl_kernel: tl.KernelOp,
        nodes: Sequence[SpatialOp],
        world: int,
    ):
        self._kernel, self._tl_kernel = kernel, tl_kernel
        self.extents: dict[str, int] = {}
        for node in nodes:
            for dim, extent in kernel_extents(node).items():
                self.extents[dim] = max(extent, self.extents.get(dim, 0))
        home = Prologue(tl_kernel.body.block)
        self._constexprs = Constexprs(tl_kernel, BlocksAttr({}), self.extents)
        self._ranks: RankParameters | None = None
        self._group: RankParameters | None = None
        if world > 1:
            self._ranks = rank_parameters(
                tl_kernel, world, home, self._constexprs, _awaited(kernel, nodes)
            )
        if (size := group_size(nodes[0])) > 1:
            self._group = group_parameters(
                tl_kernel, size, home, self._constexprs, self._ranks
            )
        self.memory = KernelMemory(
            kernel, tl_kernel, self._constexprs, self._ranks, self._group
        )

    @property
    def has_epoch(self) -> bool:
        """Whether the kernel counts its launches."""
        parameters = self._group or self._ranks
        return parameters is not None and parameters.shared.counts_launches

    def lower(self) -> list[int]:
        """Write all nodes; return the extents of the launch grid."""
        block, parameters = self._tl_kernel.body.block, self._group or self._ranks
        for arrive in arrivals_in(self._kernel):
            check_arrival(arrive)
        nodes = launched_nodes(self._kernel)
        programs = sum(prod(grid_of(node)) for node in nodes)
        if parameters is None:
            node, *others = nodes
            if not others:
                self._lower_one_node(node)
                return list(grid_of(node))
            self._lower_nodes(nodes, self._all_programs())
            return [programs]
        first = ProgramRange(
            block, parameters.home.insertion_point(), parameters.program
        )
        if signalled := _signals_of_inputs(self._kernel):
            first = self._signal_inputs(signalled, first)
            programs += 1
        self._lower_nodes(nodes, first)
        programs *= 1 if self._group is None else self._group.world
        parameters.shared.finish(programs)
        return [programs]

    def _all_programs(self) -> ProgramRange:
        """Return the programs of a launch with one axis, of one rank."""
        block = self._tl_kernel.body.block
        home = self.memory.entry.insertion_point()
        return ProgramRange(block, home, home.insert(tl.ProgramIdOp(0), "program"))

    def _lower_one_node(self, node: SpatialOp) -> None:
        """Write the one launched node of a kernel of one rank."""
        if _is_persistent(node) or shares_of(node) is not None:
            self._lower_node(node, self._all_programs())
            return
        block, home = self._tl_kernel.body.block, self.memory.entry.insertion_point()
        scope = self._scope(node, block, home, None)
        lower_grid(node, scope)
        self._lower_merge(node, scope)

    def _lower_node(self, node: SpatialOp, programs: ProgramRange) -> None:
        """Write a node for some of the programs."""
        scope = self._scope(node, programs.block, programs.home, programs.number)
        if (shares := shares_of(node)) is not None:
            scope = lower_shares(node, shares, scope)
        elif _is_persistent(node):
            assert node.programs is not None
            tiles, launched = prod(node.programs.tiles), node.programs.persistent
            stages = None if node.launch is None else node.launch.stages
            ahead = loads_tiles_ahead(self._kernel) and stages != 1
            tile = programs.for_each_tile(tiles, launched, stages if ahead else None)
            scope = scope_in(tile.block, scope)
            scope.program = tile.number
        lower_grid(node, scope)
        self._lower_merge(node, scope)

    def _lower_merge(self, node: SpatialOp, scope: Scope) -> None:
        """Write the merging node of the last program to arrive, if programs arrive."""
        arrivals = arrivals_in(self._kernel)
        arrive = next((op for op in arrivals if arriving_node(op) is node), None)
        if arrive is None:
            check_shares(node)
            return
        merge = merging_node(arrive)
        assert merge is not None
        inside = lower_arrival(arrive, scope)
        then = self._scope(merge, inside, Prologue(inside), None)
        then.places = {loop.dim: loop.index for loop in scope.grid}
        then.numbers = scope.numbers
        lower_grid(merge, then)

    def _signal_inputs(
        self, signals: Sequence[SignalOp], programs: ProgramRange
    ) -> ProgramRange:
        """
        Let the first program signal the inputs in symmetric memory; return the others.

        It waits for nothing: a program may only wait for programs that start earlier.
        """
        first, others = programs.divided(1)
        scope = Scope(
            builder_in(first.block),
            first.home,
            self._constexprs,
            {},
            self.memory,
            ranks=self._ranks,
        )
        for op in signals:
            lower_signal(op, scope)
        return others

    def _lower_nodes(self, nodes: Sequence[SpatialOp], programs: ProgramRange) -> None:
        """Write nodes so that the first programs do the first one."""
        ranges: list[ProgramRange] = []
        for node in nodes[:-1]:
            first, programs = programs.divided(prod(grid_of(node)))
            ranges.append(first)
        ranges.append(programs)
        for node, each in zip(nodes, ranges, strict=True):
            self._lower_node(node, each)
        make_branch_ends_differ(each.block for each in ranges)

    def _scope(
        self, node: SpatialOp, block: Block, home: Prologue, program: SSAValue | None
    ) -> Scope:
        """Return the scope of a node's body, in which every slice is whole."""
        constexprs, loops = self._constexprs.of_part(blocks_of(node)), rank_loops(node)
        slices = {
            dim: self._full_dim(dim, shape, constexprs, home)
            for dim, shape in uncut_slices(node, loops).items()
        }
        return Scope(
            builder_in(block),
            home,
            constexprs,
            slices,
            self.memory,
            level=memory_level(node),
            extents=kernel_extents(node),
            over_ranks=loops,
            ranks=self._ranks,
            group=self._group,
            program=program,
        )

    def _full_dim(
        self, dim: str, shape: Slice, constexprs: Constexprs, home: Prologue
    ) -> DimSlice:
        """Return a whole dimension, or this rank's shard of it, as one slice."""
        size = constexprs.extent(dim, shape.length)
        full = DimSlice(dim, shape, None, size, home, constexprs)
        if not shape.uneven:
            return full
        before = home.binary(BinaryKind.MUL, self.memory.rank, size)
        all_ranks = constexprs.extent(dim, self._kernel.shard_extents[dim])
        remaining = home.binary(BinaryKind.SUB, all_ranks, before)
        remaining = home.binary(BinaryKind.MIN, remaining, size)
        hint = f"stop_{dim.lower()}"
        stop = home.binary(BinaryKind.MAX, remaining, 0, hint)
        return replace(full, stop=stop)


def unwritable(kernel: dataflow.KernelOp) -> SSAValue | None:
    """Return a value whose element type no Triton kernel takes, None if all are."""
    producers = (op for op in kernel.walk() if not isinstance(op, CopyOp))
    for value in (result for op in producers for result in op.results):
        if isinstance(value.type, EpochType):
            continue
        if element_type_of(value) not in WRITABLE:
            return value
    return None


def _erase_unused(kernel: tl.KernelOp) -> None:
    """Drop values that nothing uses: ends of slices that need no mask."""
    for op in list(kernel.body.walk(reverse=True)):
        if op.has_trait(Pure) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _order_parameters(kernel: tl.KernelOp, dims: list[str], has_epoch: bool) -> None:
    """
    Put pointers first, then ranks, extents, block sizes, and what the runtime says.

    What is not used is dropped.
    """
    old = kernel.body.block

    def order(argument: SSAValue) -> tuple[int, int, str]:
        name = argument.name_hint or ""
        if argument.type == i32 or name == HEAP_BASES:
            return (1, int(name == HEAP_BASES), "")
        if isinstance(argument.type, tl.PtrType):
            return (0, int(has_epoch and name == "counters_ptr"), "")
        if name == WORLD or not isinstance(argument.type, tl.ConstexprType):
            return (4, int(isinstance(argument.type, tl.ProgramsType)), name)
        stem = name.split("_")[0]
        return (2, dims.index(stem), name) if stem in dims else (3, 0, name)

    arguments = sorted(old.args, key=order)
    arguments = [
        arg for arg in arguments if arg.uses or isinstance(arg.type, tl.PtrType)
    ]
    block = block_taking(arguments)
    for argument, new in zip(arguments, block.args, strict=True):
        argument.replace_all_uses_with(new)
    Rewriter.inline_block(old, InsertPoint.at_end(block))
    kernel.body.add_block(block)
