"""
Trials of kernels: the best tiles, their time, and whether they can be lowered.

A trial builds a kernel in a function of its own. Each kernel is tried once, even if it
is part of several choices, and the result is cached for equal kernels of later
functions: a search runs `fuse` on many copies of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Generic, TypeVar

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize
from comet.cost.from_ir.products import summarize_products
from comet.cost.gpu.device import Device
from comet.cost.gpu.spent import Resource
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import FillOp, IndexOp, View
from comet.dialects.compound.dims import joined_extents, with_level
from comet.dialects.compound.gather import scatterings
from comet.dialects.compound.views import readers_of, sources
from comet.dialects.dataflow import KernelOp
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.grid import grid_nodes
from comet.passes.dataflow.launches import (
    LaunchPrices,
    LaunchTimes,
    TiledNode,
    extents_around,
    waits,
)
from comet.passes.dataflow.outline_kernels import outline, plan_launches
from comet.passes.schedule.fuse.gpu.groups import values_read
from comet.passes.schedule.fuse.gpu.kernel_key import kernel_key
from comet.passes.schedule.fuse.gpu.kernel_tree import KernelLevels
from comet.passes.schedule.fuse.gpu.narrow import UNROUNDED, unround
from comet.passes.schedule.fuse.gpu.scatters import stored_by
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.node_names import name_nodes, result_name
from comet.passes.schedule.tile import apply_plan
from comet.passes.schedule.tile.gpu import (
    KernelTiling,
    best_tiling,
    misfit,
    plan_with,
)
from comet.passes.schedule.tile.gpu.space import may_be_long, may_have_tiling
from comet.passes.schedule.tile_tree import (
    InsertionScope,
    Spatial,
    build,
    chunks_of,
    loops_below,
)
from comet.passes.search import session
from comet.passes.search.ahead import ahead
from comet.passes.search.record import Choice
from comet.passes.triton.lower_to_triton import prepare
from comet.passes.triton.lower_to_triton.kernel import lower_kernel, unwritable
from comet.passes.triton.specialize_tiles import specialized_tiling
from comet.recent import Recent

T = TypeVar("T")


@dataclass(frozen=True)
class Searched:
    """The result of a search for tiles, and the choices that it made."""

    tiling: KernelTiling | None
    """None if no tiles fit."""
    choices: tuple[Choice, ...]

    def recorded(self, name: str | None) -> None:
        """Record the choices again, for an equal kernel with another name."""
        with session() as current:
            for choice in self.choices:
                place = choice.place if name is None else f"@{name}"
                here = replace(choice, within=current.within, place=place)
                current.choices.append(here)


@dataclass
class Known:
    """What trials have found for a kernel, which holds for all equal kernels."""

    best: Searched
    """The best tiles, none if none fit."""
    tiled: TiledNode | None
    """The work of its programs, None if it may not share a launch."""
    specialized: KernelTiling | None = None
    """The best tiles with producer warps, if these are faster, see `compared`."""
    compared: bool = False
    """Whether producer warps were tried."""
    longer: Searched | None = None
    """The tiles with long blocks of terms that are faster, None if not looked for."""
    lowered: bool = False
    """Whether it was lowered with its best tiles, without an error."""


FEWEST_LOWERED = 4
"""With fewer kernels, lowering takes less time than forking a process."""

MOST_KNOWN = 512
"""The size of the cache: more kernels than a large graph tries, some megabytes."""

_KNOWN: dict[Hashable, Known] = {}
"""A least-recently-used (LRU) cache; the oldest entries come first."""


def _recalled(key: Hashable) -> Known | None:
    """Return the cache entry of a kernel, None if there is none."""
    if (known := _KNOWN.pop(key, None)) is not None:
        _KNOWN[key] = known
    return known


def _remember(key: Hashable, known: Known) -> None:
    """Add a cache entry; drop the least recently used one if the cache is full."""
    if len(_KNOWN) >= MOST_KNOWN:
        del _KNOWN[next(iter(_KNOWN))]
    _KNOWN[key] = known


@dataclass(frozen=True)
class Noted(Generic[T]):
    """The result of a task, and the cache entries that it added."""

    result: T
    facts: Sequence[tuple[Hashable, Known]]

    def learned(self) -> T:
        """Add the entries to the cache of this process, too; return the result."""
        for key, known in self.facts:
            if _recalled(key) is None:
                _remember(key, known)
        return self.result


def noted(work: Callable[[], T]) -> Noted[T]:
    """Return the result of `work`, with the cache entries that it adds."""
    before = tuple(_KNOWN.values())
    old = set(map(id, before))  # `before` keeps them, so ids stay theirs
    result = work()
    return Noted(result, [fact for fact in _KNOWN.items() if id(fact[1]) not in old])


@dataclass(frozen=True, eq=False)
class TriedKernel:
    """A kernel of which some tiles fit: the best tiles, and what else is known."""

    tiling: KernelTiling
    nodes: tuple[TiledNode, ...]
    """The work of its programs, empty if it may not share a launch."""
    known: Known

    @property
    def seconds(self) -> float:
        """The seconds of a launch of its own."""
        return self.tiling.seconds

    @property
    def divided(self) -> Mapping[Resource, float]:
        """The same, by resource."""
        return self.tiling.divided


def _without_subtiles(gpu: Device) -> Device:
    """Return a GPU whose kernels compute their epilogues whole."""
    stores = replace(gpu.triton.stores, epilogue_subtiles=1)
    return replace(gpu, triton=replace(gpu.triton, stores=stores))


_LAUNCHES = Recent[str, LaunchTimes](4)
"""The times of launches of known kernels, by the GPU."""


def launch_times(machine: str, gpu: Device) -> LaunchTimes:
    """Return what is known of launches on a GPU, which `machine` describes."""
    if (known := _LAUNCHES.get(machine)) is not None:
        return known
    return _LAUNCHES.keep(machine, LaunchTimes(gpu))


class Trials:
    """
    The kernels that were tried on one GPU.

    `launches_merged`: kernels that do not depend on each other may share a launch.
    `specialize`: kernels have producer warps where that is faster. Kernels that
    exchange values with other ranks do neither. Kernels of `several_ranks` compute
    their epilogues whole, not in subtiles.
    """

    def __init__(
        self,
        system: SystemOp,
        *,
        launches_merged: bool = False,
        specialize: bool = False,
        several_ranks: bool = False,
    ):
        self._system, self._levels = system, gpu_levels(system)
        self._launches_merged, self._specialize = launches_merged, specialize
        gpu = device_of(system)
        self.gpu = _without_subtiles(gpu) if several_ranks else gpu
        self.machine = f"{self.gpu} {self._levels}"
        times = launch_times(self.machine, self.gpu)
        self.launches = LaunchPrices[TriedKernel](times, lambda trial: trial.nodes)
        """The prices of launches that several kernels share."""
        self._trials: dict[Spatial, TriedKernel | None] = {}
        """None for a kernel of which no tiles fit."""
        self._nodes: dict[Spatial, SpatialOp] = {}
        """The nodes of kernels that were built, and not lowered so far."""

    @property
    def tried(self) -> int:
        """How many kernels were tried."""
        return len(self._trials)

    def _tried(self, kernel: Spatial) -> TriedKernel | None:
        try:
            return self._trials[kernel]
        except KeyError:
            self._trials[kernel] = trial = self._try(kernel)
            return trial

    def _try(self, kernel: Spatial) -> TriedKernel | None:
        """Build a kernel and find its best tiles; None if no tiles fit."""
        known = self._known(kernel)
        if (tiling := known.best.tiling) is None:
            return None
        merged = self._launches_merged and not exchanges(kernel)
        nodes = (known.tiled,) if merged and known.tiled else ()
        return TriedKernel(tiling, nodes, known)

    def _known(self, kernel: Spatial) -> Known:
        """Return the cache entry of a kernel, and record the choice of its tiles."""
        name = result_name(kernel.outs[0])
        key = self.machine, kernel_key(kernel), name is None
        with session() as current:
            if (known := _recalled(key)) is not None:
                known.best.recorded(name)
                return known
            before = len(current.choices)
            tiling, tiled = self._tiled(kernel)
            known = Known(Searched(tiling, tuple(current.choices[before:])), tiled)
            if not current.is_late:
                _remember(key, known)
            return known

    def _tiled(self, kernel: Spatial) -> tuple[KernelTiling | None, TiledNode | None]:
        """Return the best tiles of a kernel, and its programs if they may be shared."""
        grid = tuple(loop.dim for loop in kernel.loops)
        products = summarize_products(kernel.ops, grid, tuple(loops_below(kernel)))
        if not may_have_tiling(products, self.gpu):
            return None, None
        node = self._nodes[kernel] = self._built(kernel)
        summary = summarize(node, self._levels, self.gpu)
        tiling = best_tiling(node, summary, self.gpu, long=False)
        if tiling is None or waits(node) or any(map(scatterings, kernel.outs)):
            return tiling, None
        numbers = launch_numbers(tiling.launch)
        return tiling, TiledNode(summary, tiling.blocks, numbers, extents_around(node))

    def _built(self, kernel: Spatial) -> SpatialOp:
        block = standalone_function(kernel, self._levels).body.block
        (node,) = (op for op in block.ops if isinstance(op, SpatialOp))
        return node

    def fitting(self, kernel: Spatial) -> TriedKernel:
        """Return the trial of a kernel that is known to fit."""
        trial = self._tried(kernel)
        assert trial is not None
        return trial

    def tiling(self, kernel: Spatial) -> KernelTiling:
        """Return the best tiles of a kernel that is known to fit."""
        return self.fitting(kernel).tiling

    def seconds(self, kernel: Spatial) -> float:
        """Return the seconds of a launch with the best tiles, infinite if none fit."""
        trial = self._tried(kernel)
        return inf if trial is None else trial.tiling.seconds

    def fits(self, kernel: Spatial) -> bool:
        """Return whether any tiles of a kernel fit the GPU."""
        return self._tried(kernel) is not None

    def launched(self, kernel: Spatial) -> TriedKernel:
        """
        Return the trial of a kernel that is known to fit, as it will be launched.

        If it is faster with producer warps, the trial has the tiles for these.
        """
        trial = self.fitting(kernel)
        if not self._specialize or exchanges(kernel):
            return trial
        if not trial.known.compared:
            self._compare(kernel, trial)
        specialized = trial.known.specialized
        return (
            trial if specialized is None else TriedKernel(specialized, (), trial.known)
        )

    def lengthened(self, kernels: Iterable[Spatial]) -> dict[Spatial, TriedKernel]:
        """
        Return the trials of kernels that are faster with long blocks of terms.

        Like the others, they can be lowered to Triton.
        """
        found: dict[Spatial, TriedKernel] = {}
        tilings: dict[int, KernelTiling | None] = {}
        for kernel in kernels:
            trial = self.launched(kernel)
            if trial is not self.fitting(kernel):
                continue
            equal = id(trial.known)  # equal kernels have one `Known`
            if equal not in tilings:
                tilings[equal] = self._longer(kernel, trial)
            if (tiling := tilings[equal]) is not None:
                numbers, blocks = launch_numbers(tiling.launch), tiling.blocks
                nodes = (
                    replace(each, blocks=blocks, numbers=numbers)
                    for each in trial.nodes
                )
                found[kernel] = TriedKernel(tiling, tuple(nodes), trial.known)
        return found

    def _longer(self, kernel: Spatial, trial: TriedKernel) -> KernelTiling | None:
        """Return tiles with long blocks if they are faster than the best without."""
        if (known := trial.known.longer) is not None:
            known.recorded(result_name(kernel.outs[0]))
            return known.tiling
        with session() as current:
            before = len(current.choices)
            tiling = self._tried_longer(kernel, trial.tiling)
            if not current.is_late:
                choices = tuple(current.choices[before:])
                trial.known.longer = Searched(tiling, choices)
            return tiling

    def _tried_longer(self, kernel: Spatial, best: KernelTiling) -> KernelTiling | None:
        node = self._built(kernel)
        summary = summarize(node, self._levels, self.gpu)
        if not any(may_be_long(summary, dim) for dim in summary.products.depths):
            return None
        tiling = best_tiling(node, summary, self.gpu)
        if tiling is None or tiling.seconds >= best.seconds:
            return None
        return None if refusal(node, tiling, self._system) else tiling

    def _compare(self, kernel: Spatial, trial: TriedKernel) -> None:
        """Find out whether a kernel is faster with producer warps."""
        func = standalone_function(kernel, self._levels)
        (node,) = grid_nodes(func)
        known, present = trial.known, trial.tiling.seconds
        known.specialized = specialized_tiling(func, node, self._system, present)
        known.compared = True

    def misfit(self, kernel: Spatial) -> str:
        """Return why no tiles of a kernel fit the GPU, empty if some do."""
        if self.fits(kernel):
            return ""
        reason = misfit(self._built(kernel), self._levels, self.gpu)
        return f"fuse: {reason}; make a dimension smaller, or split it"

    def refusal(self, kernel: Spatial) -> str:
        """Return why a kernel with its best tiles is not lowered, empty if it is."""
        _, reason = self.first_refused((kernel,)) or (kernel, "")
        return reason

    def first_refused(self, kernels: Iterable[Spatial]) -> tuple[Spatial, str] | None:
        """
        Return the first kernel that is not lowered with its best tiles, and why.

        Several processes share many kernels.
        """
        first: dict[int, Spatial] = {}  # of equal kernels, which have one `Known`
        for kernel in kernels:
            known = self.fitting(kernel).known
            if not known.lowered:
                first.setdefault(id(known), kernel)
        new = tuple(first.values())
        tasks = [partial(self._refusal, kernel) for kernel in new]
        with ahead(tasks, FEWEST_LOWERED) as done:
            for number, kernel in enumerate(new):
                if reason := done.result(number):
                    return kernel, reason
                self.fitting(kernel).known.lowered = True
        return None

    def _refusal(self, kernel: Spatial) -> str:
        node = self._nodes.pop(kernel, None) or self._built(kernel)
        return refusal(node, self.tiling(kernel), self._system)


def exchanges(kernel: Spatial) -> bool:
    """Return whether a kernel reads a collective's result, or computes its operand."""
    read = (source for value in values_read(kernel.ops) for source in sources(value))
    readers = (op for value in kernel.outs for op in readers_of(value))
    neighbours = (*(value.owner for value in read), *readers)
    return any(isinstance(op, CollectiveOp) for op in neighbours)


def standalone_function(kernel: Spatial, levels: GpuLevels) -> FuncOp:
    """
    Return a function with one kernel, and the kernel's inputs as arguments.

    Raises PassFailedException if a loop is over a dimension that no input has.
    """
    scope = InsertionScope(Block(), None, KernelLevels(levels), chunks_of(kernel.ops))
    for value in values_read(kernel.ops):
        _add_input(value, scope)
    build(kernel, scope)
    for value in kernel.outs:
        for op in scatterings(value):
            _add_input(op.ids, scope)
            scope.insert(op)
    results = [scope.at(value, levels.memory) for value in stored_by(kernel)]
    scope.block.add_op(ReturnOp(*results))
    types = scope.block.arg_types, [value.type for value in results]
    func = FuncOp("alone", types, Region(scope.block))
    _check_loops(func)
    if any(UNROUNDED in op.attributes for op in kernel.ops):
        unround(func)
    simplify(func)
    name_nodes(func)
    return func


def _check_loops(func: FuncOp) -> None:
    """Check that every node has an input along each dimension that it loops over."""
    for node in func.walk():
        if not isinstance(node, NodeOp):
            continue
        known = joined_extents((*node.ins, *node.init_args()))
        for dim in node.factors:
            if dim not in known:
                raise OpError(
                    node,
                    f"fuse: the node of {called(node.outs[0])} loops over {dim}, "
                    "which only constants have; make the constant an argument of the "
                    "function",
                )


def _add_input(value: SSAValue, scope: InsertionScope) -> None:
    """Add an argument for `value`, or for the value that it is a view of."""
    owner = value.owner
    if value in scope.values or isinstance(owner, FillOp):
        return
    if isinstance(owner, View | IndexOp | CollectiveOp):
        for operand in owner.operands:
            _add_input(operand, scope)
        scope.insert(owner)
        return
    type_ = with_level(value.type, scope.levels.at(value, None))
    scope.add(value, scope.block.insert_arg(type_, len(scope.block.args)))


def refusal(node: SpatialOp, tiling: KernelTiling, system: SystemOp) -> str:
    """
    Return why `lower-to-triton` rejects a kernel with its tiles, empty if it accepts.

    The kernel is the only one of its function, and is lowered in place.
    """
    func = node.parent_op()
    assert isinstance(func, FuncOp)
    try:
        apply_plan(func, plan_with({node: tiling}), system)
        outline(func, plan_launches(func))
        prepare(func)
        for op in list(func.walk()):
            # No other kernels would change the element types.
            if isinstance(op, KernelOp) and op.nodes and unwritable(op) is None:
                lower_kernel(op)
    except PassFailedException as error:
        return f"fuse: {error}"
    return ""
