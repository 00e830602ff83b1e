"""
`merge-launches`: dataflow level -> the same, with fewer launches on one GPU.

Kernels of which none needs what another makes can be one launch, whose first programs
do the first of them: the products of queries, keys and values, or the gradients of
several weights. All programs of a launch have the same numbers of warps and stages, and
the room of the largest; where that costs less than a launch takes, kernels are merged.
Barriers are then where a kernel reads what was written since the last one. Launch plans
of several ranks stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.gpu.capacity import fits
from comet.cost.gpu.kernel import Device, kernel_time
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.gpu.tiling import kernel_work
from comet.cost.reals import longest
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound import FillOp, IndexOp, View
from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow import KernelOp, ProgramOp, YieldOp
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.dataflow.kernels import joined, place_barriers
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.tile.gpu import finish_kernel

LAUNCHES = "comet.launches"
"""The attribute of a function with the kernels that are launched as one."""

Group: TypeAlias = tuple[KernelOp, ...]
"""Kernels of one launch, in order."""


@dataclass(frozen=True)
class MergeLaunchesPass(ChoosingPass):
    """Launch kernels that do not need each other as one."""

    name = "merge-launches"

    NOTES: ClassVar[Mapping[str, str]] = {"launches": LAUNCHES}

    launches: str = "auto"
    """
    On one GPU, the kernels that are launched as one, as in "f_q_kernel f_k_kernel;
    f_u_kernel f_v_kernel"; `none`; or `auto`: those for which that is faster.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        require_gpu(self.name, system)
        for function in functions_at(op, self.name, IRLevel.DATAFLOW):
            for program in function.walk():
                if isinstance(program, ProgramOp) and rank_count(program) == 1:
                    plan = plan_merges(program, system, self.launches)
                    function.attributes[LAUNCHES] = StringAttr(format_launches(plan))
                    merge_launches(program, plan, system)


@dataclass(frozen=True)
class Launch:
    """Kernels of one launch, and the numbers that all of their programs have."""

    kernels: Group
    numbers: Mapping[str, int]
    """Warps and stages; none for a kernel that is launched alone."""


def plan_merges(
    program: ProgramOp, system: SystemOp, launches: str
) -> tuple[Launch, ...]:
    """
    Return the launches of a program, in order.

    Raises PassFailedException for given launches that are not possible.
    """
    needs, prices = Needs.of(program), _Prices(system)
    groups: list[Group] = [(kernel,) for kernel in needs.kernels]
    if launches not in ("auto", "none"):
        groups = _given(needs, launches, prices)
    elif launches == "auto":
        groups = _cheapest(needs, prices)
    return tuple(
        Launch(group, prices.numbers(group) if len(group) > 1 else {})
        for group in needs.in_order(groups)
    )


def format_launches(plan: Sequence[Launch]) -> str:
    """Return the text of the option that makes the same launches."""
    merged = (launch.kernels for launch in plan if len(launch.kernels) > 1)
    names = (" ".join(kernel.sym_name.data for kernel in group) for group in merged)
    return "; ".join(names) or "none"


@dataclass(frozen=True)
class Needs:
    """The kernels of a program, in order, and which of them each one reads from."""

    kernels: tuple[KernelOp, ...]
    read: Mapping[KernelOp, frozenset[KernelOp]]

    @classmethod
    def of(cls, program: ProgramOp) -> Needs:
        """Read them from a program."""
        kernels = tuple(program.kernels())
        made: dict[SSAValue, KernelOp] = {
            result: kernel for kernel in kernels for result in kernel.results_
        }
        read = {
            kernel: frozenset(made[value] for value in kernel.ins if value in made)
            for kernel in kernels
        }
        return cls(kernels, read)

    def independent(self, one: Group, other: Group, groups: Sequence[Group]) -> bool:
        """Return whether neither needs the other, directly or through `groups`."""
        return not (
            self._reaches(one, other, groups) or self._reaches(other, one, groups)
        )

    def _reaches(self, start: Group, end: Group, groups: Sequence[Group]) -> bool:
        """Return whether `start` needs something that `end` makes."""
        group_of = {kernel: group for group in groups for kernel in group}
        seen, pending = set[Group](), [start]
        while pending:
            for kernel in pending.pop():
                for needed in (group_of[each] for each in self.read[kernel]):
                    if needed == end:
                        return True
                    if needed not in seen:
                        seen.add(needed)
                        pending.append(needed)
        return False

    def in_order(self, groups: Sequence[Group]) -> Iterator[Group]:
        """Yield the groups, each after those that it needs."""
        done, pending = set[KernelOp](), list(groups)
        while pending:
            ready = next(
                group
                for group in pending
                if all(self.read[kernel] <= done for kernel in group)
            )
            pending.remove(ready)
            done.update(ready)
            yield ready


def _cheapest(needs: Needs, prices: _Prices) -> list[Group]:
    """
    Return the groups that save most launches.

    Each kernel in turn joins the earlier group with which that saves most time.
    """
    groups: list[Group] = [(kernel,) for kernel in needs.kernels]
    for kernel in needs.kernels:
        own = (kernel,)
        alone = prices.best(own)[0]
        gains = {
            group: prices.best(group)[0] + alone - prices.best((*group, kernel))[0]
            for group in groups[: groups.index(own)]
            if prices.together((*group, kernel))
            and needs.independent(group, own, groups)
        }
        best = max(gains, key=gains.__getitem__, default=own)
        if gains.get(best, 0) > 0:
            groups.remove(own)
            groups[groups.index(best)] = (*best, kernel)
    return groups


def _given(needs: Needs, text: str, prices: _Prices) -> list[Group]:
    """Return the groups that `text` names, and the other kernels alone."""
    groups: list[Group] = [(kernel,) for kernel in needs.kernels]
    for named in _named(needs, text):
        group = named[:1]
        for kernel in named[1:]:
            if not needs.independent(group, (kernel,), groups):
                others = " and ".join(each.sym_name.data for each in group)
                raise PassFailedException(
                    f"merge-launches: {kernel.sym_name.data} and {others} need each "
                    "other's results; launch them one after the other"
                )
            groups = [each for each in groups if each not in (group, (kernel,))]
            group = (*group, kernel)
            groups.append(group)
        if not isfinite(prices.best(group)[0]):
            names = " and ".join(kernel.sym_name.data for kernel in group)
            raise PassFailedException(
                f"merge-launches: {names} cannot be one launch: they have two extents "
                "of a dimension, or too large tiles for one number of warps and "
                "stages; launch them one after the other"
            )
    return groups


def _named(needs: Needs, text: str) -> Iterator[Group]:
    """Yield the kernels of each launch that `text` names."""
    kernels = {kernel.sym_name.data: kernel for kernel in needs.kernels}
    left = dict(kernels)
    for names in filter(None, (part.split() for part in text.split(";"))):
        group: list[KernelOp] = []
        for name in (name.removeprefix("@") for name in names):
            if name not in kernels:
                raise PassFailedException(
                    f"merge-launches: launches names {name}, and the kernels are "
                    f"{', '.join(kernels)}"
                )
            if name not in left:
                raise PassFailedException(
                    f"merge-launches: launches names {name} twice; name it in one"
                )
            group.append(left.pop(name))
        yield tuple(group)


class _Prices:
    """The times of launches on one GPU."""

    def __init__(self, system: SystemOp):
        self.gpu: Device = device_of(system)
        self._levels = gpu_levels(system)
        self._read: dict[SpatialOp, tuple[KernelSummary, Blocks]] = {}
        self._best: dict[Group, tuple[float, tuple[int, int]]] = {}

    def together(self, group: Group) -> bool:
        """
        Return whether kernels have tiles, and agree on the extents of dimensions.

        No program may wait for others, which need not run at the same time.
        """
        extents: dict[str, int] = {}
        for kernel in group:
            nodes, known = kernel.nodes, (SpatialOp, View, IndexOp, FillOp, YieldOp)
            if not all(isinstance(op, known) for op in kernel.body.block.ops):
                return False
            if any(isinstance(op, CollectiveOp) for op in kernel.walk()):
                return False
            if not nodes or any(node.launch is None for node in nodes):
                return False
            for value in (v for node in nodes for v in (*node.ins, *node.outs)):
                for dim, extent in extents_of(value).items():
                    if extents.setdefault(dim, extent) != extent:
                        return False
        return True

    def best(self, group: Group) -> tuple[float, tuple[int, int]]:
        """
        Return the seconds of a launch, and its warps and stages: those of a kernel of
        the group with which it takes least. Infinite if the group is impossible.
        """
        if group not in self._best:
            wanted = [node.launch for kernel in group for node in kernel.nodes]
            numbers = dict.fromkeys(
                (n.warps, n.stages) for n in wanted if n is not None
            )
            priced = {each: self._seconds(group, each) for each in numbers}
            if not self.together(group) or not priced:
                priced = {(0, 0): inf}
            least = min(priced, key=priced.__getitem__)
            self._best[group] = priced[least], least
        return self._best[group]

    def numbers(self, group: Group) -> Mapping[str, int]:
        """Return the launch numbers of `best`, by name."""
        warps, stages = self.best(group)[1]
        return {"warps": warps, "stages": stages}

    def _seconds(self, group: Group, numbers: tuple[int, int]) -> float:
        nodes = [node for kernel in group for node in kernel.nodes]
        if not all(self._fits(node, numbers) for node in nodes):
            return inf
        works = [
            kernel_work(*self._summary(node), LaunchNumbers(*numbers), self.gpu)
            for node in nodes
        ]
        registers = longest(work.registers for work in works)
        shared = longest(work.shared for work in works)
        largest = [replace(w, registers=registers, shared=shared) for w in works]
        times = (float(kernel_time(w, self.gpu).seconds) for w in largest)
        return self.gpu.launch + sum(time - self.gpu.launch for time in times)

    def _fits(self, node: SpatialOp, numbers: tuple[int, int]) -> bool:
        """Return whether a program has room with these numbers, if not its own."""
        own = node.launch
        if own is not None and (own.warps, own.stages) == numbers:
            return True
        launch = LaunchNumbers(*numbers)
        return bool(fits(*self._summary(node), launch, self.gpu) > 0)

    def _summary(self, node: SpatialOp) -> tuple[KernelSummary, Blocks]:
        if node not in self._read:
            summary = summarize(node, self._levels, self.gpu)
            self._read[node] = summary, tile_blocks(node)
        return self._read[node]


def merge_launches(
    program: ProgramOp, plan: Sequence[Launch], system: SystemOp
) -> None:
    """Make each launch of `plan` one kernel, and put barriers where they are needed."""
    if all(len(launch.kernels) == 1 for launch in plan):
        return
    block, levels, gpu = program.body.block, gpu_levels(system), device_of(system)
    end = block.last_op
    assert end is not None
    for launch in plan:
        for kernel in launch.kernels:
            kernel.detach()
            block.insert_op_before(kernel, end)
    made = [_merged(launch) for launch in plan]
    place_barriers(program)
    for kernel, launch in zip(made, plan, strict=True):
        for node in kernel.nodes if launch.numbers else ():
            finish_kernel(node, levels, gpu, launch.numbers)


def _merged(launch: Launch) -> KernelOp:
    made, *others = launch.kernels
    name = made.sym_name
    for kernel in others:
        made = joined(made, kernel)
    made.sym_name = name
    return made
