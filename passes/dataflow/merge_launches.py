"""
`merge-launches`: dataflow level -> the same, with fewer launches on each GPU.

Kernels of which none needs what another makes can be one launch, such as the products
of queries, keys and values, or the gradients of several weights (horizontal fusion).
Where that costs less than a launch takes, kernels are merged (`launches`). On several
ranks these are kernels that exchange nothing, and between the same collectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.locality import collective_of, is_local
from comet.dialects.dataflow.program import programs_in
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.kernels import has_only_nodes, joined, place_barriers
from comet.passes.dataflow.launches import (
    Dependences,
    LaunchPrices,
    LaunchTimes,
    TiledNode,
    cheapest_launches,
)
from comet.passes.dataflow.share_tiles.analysis import PartialFold, partial_fold
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.tile.gpu.finish import finish_kernel

LAUNCHES = "comet.launches"
"""The attribute of a function with the kernels that are launched as one."""

Group: TypeAlias = tuple[KernelOp, ...]
"""Kernels of one launch, in order."""


@dataclass(frozen=True)
class MergeLaunchesPass(ChoosingPass, FunctionPass):
    """Launch kernels that do not need each other as one."""

    name = "merge-launches"

    LEVELS = (IRLevel.DATAFLOW,)

    NOTES: ClassVar[Mapping[str, str]] = {"launches": LAUNCHES}

    launches: str = "auto"
    """
    The kernels that are launched as one, as in "f_q_kernel f_k_kernel;
    f_u_kernel f_v_kernel"; `none`; or `auto`: those for which that is faster.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        for program in programs_in(function):
            plan = plan_merges(program, system, self.launches)
            function.attributes[LAUNCHES] = StringAttr(format_launches(plan))
            merge_launches(program, plan, system)


@dataclass(frozen=True)
class PlannedLaunch:
    """Kernels of one launch, and the numbers that all of their programs have."""

    kernels: Group
    numbers: Mapping[str, int]
    """Warps and stages; empty for a launch of one kernel."""


def plan_merges(
    program: ProgramOp, system: SystemOp, launches: str
) -> tuple[PlannedLaunch, ...]:
    """
    Return the launches of a program, in order.

    Raises PassFailedException for given launches that are not possible.
    """
    needs, prices = dependences_of(program), prices_on(system)
    groups: list[Group] = [(kernel,) for kernel in needs.kernels]
    if launches not in ("auto", "none"):
        groups = _groups_in_text(needs, launches, prices)
    elif launches == "auto":
        groups = cheapest_launches(needs, prices)
    return tuple(
        PlannedLaunch(group, _numbers(group, prices) if len(group) > 1 else {})
        for group in needs.in_order(groups)
    )


def _numbers(group: Group, prices: LaunchPrices[KernelOp]) -> Mapping[str, int]:
    """Return the warps and stages of a launch, by name."""
    numbers = prices.best(group)[1]
    return {"warps": int(numbers.warps), "stages": int(numbers.stages)}


def format_launches(plan: Sequence[PlannedLaunch]) -> str:
    """Return the text of the option that makes the same launches."""
    merged = (launch.kernels for launch in plan if len(launch.kernels) > 1)
    names = (" ".join(kernel.sym_name.data for kernel in group) for group in merged)
    return "; ".join(names) or "none"


def dependences_of(program: ProgramOp) -> Dependences[KernelOp]:
    """
    Return the kernels of a program, and which of them each one reads from.

    A collective keeps its place: it needs all kernels before it, and all after need it.
    """
    kernels = tuple(program.kernels())
    producer_of: dict[SSAValue, KernelOp] = {
        result: kernel for kernel in kernels for result in kernel.results_
    }
    read: dict[KernelOp, frozenset[KernelOp]] = {}
    moved: tuple[KernelOp, ...] = ()
    for kernel in kernels:
        producers = (producer_of[value] for value in kernel.ins if value in producer_of)
        if collective_of(kernel) is not None:
            producers, moved = tuple(read), (kernel,)
        read[kernel] = frozenset((*producers, *moved)) - {kernel}
    return Dependences(kernels, read)


def _groups_in_text(
    needs: Dependences[KernelOp], text: str, prices: LaunchPrices[KernelOp]
) -> list[Group]:
    """Return the groups that `text` names; each other kernel is a group of one."""
    groups: list[Group] = [(kernel,) for kernel in needs.kernels]
    for named in _named(needs, text):
        group = named[:1]
        for kernel in named[1:]:
            if not needs.independent(group, (kernel,), groups):
                others = " and ".join(member.sym_name.data for member in group)
                raise PassFailedException(
                    f"merge-launches: {kernel.sym_name.data} and {others} need each "
                    "other's results, or a collective is between them; launch them one "
                    "after the other"
                )
            groups = [rest for rest in groups if rest not in (group, (kernel,))]
            group = (*group, kernel)
            groups.append(group)
        if len(group) > 1 and not isfinite(prices.best(group)[0]):
            names = " and ".join(kernel.sym_name.data for kernel in group)
            raise PassFailedException(
                f"merge-launches: {names} cannot be one launch: they have two extents "
                "of a dimension, clusters, too large tiles for one number of warps and "
                "stages, or values of other ranks; launch them one after the other"
            )
    return groups


def _named(needs: Dependences[KernelOp], text: str) -> Iterator[Group]:
    """Yield the kernels of each launch that `text` names."""
    kernels = {kernel.sym_name.data: kernel for kernel in needs.kernels}
    remaining = dict(kernels)
    for names in filter(None, (part.split() for part in text.split(";"))):
        group: list[KernelOp] = []
        for name in (name.removeprefix("@") for name in names):
            if name not in kernels:
                raise PassFailedException(
                    f"merge-launches: launches names {name}, and the kernels are "
                    f"{', '.join(kernels)}; name some of these, or say none"
                )
            if name not in remaining:
                raise PassFailedException(
                    f"merge-launches: launches names {name} twice; name it in one"
                )
            group.append(remaining.pop(name))
        yield tuple(group)


def prices_on(system: SystemOp) -> LaunchPrices[KernelOp]:
    """
    Return the times of launches of kernels that have their tiles.

    One whose shards are unequal has its own: a dimension of another may be whole. So
    has one whose programs may share a list of tiles (`share-tiles`).
    """
    gpu, levels = device_of(system), gpu_levels(system)

    def nodes_of(kernel: KernelOp) -> tuple[TiledNode, ...]:
        if not is_local(kernel) or kernel.shards or not has_only_nodes(kernel):
            return ()
        if isinstance(partial_fold(kernel), PartialFold):
            return ()
        nodes = [TiledNode.of(node, levels, gpu) for node in kernel.nodes]
        found = tuple(tiled for tiled in nodes if tiled is not None)
        return found if len(found) == len(nodes) else ()

    return LaunchPrices(LaunchTimes(gpu), nodes_of)


def merge_launches(
    program: ProgramOp, plan: Sequence[PlannedLaunch], system: SystemOp
) -> None:
    """Make each launch of `plan` one kernel, and put barriers where they are needed."""
    if all(len(launch.kernels) == 1 for launch in plan):
        return
    block, levels, gpu = program.body.block, gpu_levels(system), device_of(system)
    *_, last = program.kernels()
    end = last.next_op
    assert end is not None
    for launch in plan:
        for kernel in launch.kernels:
            kernel.detach()
            block.insert_op_before(kernel, end)
    kernels = [_merged(launch) for launch in plan]
    place_barriers(program)
    for kernel, launch in zip(kernels, plan, strict=True):
        for node in kernel.nodes if launch.numbers else ():
            finish_kernel(node, levels, gpu, launch.numbers)


def _merged(launch: PlannedLaunch) -> KernelOp:
    merged, *others = launch.kernels
    name = merged.sym_name
    for kernel in others:
        merged = joined(merged, kernel)
    merged.sym_name = name
    return merged
