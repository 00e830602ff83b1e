"""The `annotate-cost` pass: writes the estimates of a cost model on ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError, Estimate, ModelName, NodeEstimate
from comet.cost.from_ir.hardware import device_of
from comet.cost.from_ir.mapping import estimate_module
from comet.cost.gpu.taxes import Taxes
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective import CollectiveOp
from comet.dialects.comet import CollectiveOp as CometCollectiveOp
from comet.dialects.comet import MappingOp, TileOp
from comet.dialects.cost import Figures, Model, TimeUnit, annotate, estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel, functions_at


@dataclass(frozen=True)
class AnnotateCostPass(ModulePass):
    """
    Write estimates: `comet.cost` on functions or mappings, and on their nodes.

    Before: a tile tree with factors, or a mapping of the `comet` dialect, and attached
    hardware. After: the same, annotated. Accelerators are priced by the COMET files
    that the tree lowers to. Kernels of GPUs have estimates since `tile`; a launch plan
    gets the three taxes, as a whole and for each kernel and barrier.
    """

    name = "annotate-cost"

    model: Literal["tool", "paper", "ideal"] = "paper"
    """The COMET tool's numbers, the same model without defects, or perfect overlap."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        try:
            for target, figures in plan_estimates(op, system, self.model):
                annotate(target, figures)
        except CostError as error:
            raise PassFailedException(f"annotate-cost: {error}") from error


def plan_estimates(
    module: ModuleOp, system: SystemOp, model: ModelName
) -> list[tuple[Operation, Figures]]:
    """
    Return the figures of every op that gets an estimate; changes nothing.

    Raises CostError for what cannot be priced, and PassFailedException for a function
    without a tile tree.
    """
    mappings = [op for op in module.body.block.ops if isinstance(op, MappingOp)]
    if mappings:
        return list(_mapping_estimates(module, mappings[0], model))
    found: list[tuple[Operation, Figures]] = []
    name, taken = AnnotateCostPass.name, (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    for func in functions_at(module, name, *taken):
        if not any(isinstance(op, NodeOp | ProgramOp) for op in func.walk()):
            raise PassFailedException(
                f"annotate-cost: @{func.sym_name.data} has no tile tree; run fuse and "
                "tile first"
            )
        estimates = _tree_estimates if system.gpu is None else _kernel_estimates
        found += estimates(func, system, model)
    return found


def _mapping_estimates(
    module: ModuleOp, mapping: MappingOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    estimate = estimate_module(module, model)
    yield mapping, total_figures(estimate)
    nodes = [op for op in mapping.walk() if isinstance(op, TileOp | CometCollectiveOp)]
    yield from _node_figures(nodes, estimate)


def _tree_estimates(
    func: FuncOp, system: SystemOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """
    Price a lowered copy; its nodes are in the order of those of `func`.

    If the tool cannot count the runs of each sibling, only the whole gets figures.
    """
    yield func, total_figures(lowered_estimate(func, system, model, absorb=True))
    nodes = [op for op in func.walk() if isinstance(op, NodeOp | CollectiveOp)]
    try:
        estimate = lowered_estimate(func, system, model, absorb=False)
    except CostError:
        return
    outermost = [op for op in nodes if op.parent_op() is func]
    if len(outermost) > 1:  # they become one node, the root
        nodes = [op for op in nodes if op not in outermost]
        estimate = replace(estimate, nodes=estimate.nodes[1:])
    yield from _node_figures(nodes, estimate)


def lowered_estimate(
    func: FuncOp, system: SystemOp, model: ModelName, *, absorb: bool
) -> Estimate:
    """
    Return the price of the COMET files that `func` lowers to.

    Raises CostError if the mapping cannot be priced or does not fit.
    """
    return estimate_module(lowered_copy(func, system, absorb=absorb), model)


def lowered_copy(func: FuncOp, system: SystemOp, *, absorb: bool) -> ModuleOp:
    """
    Return a copy of the module of `func` in which `func` is lowered to COMET files.

    Raises PassFailedException for what the files cannot express.
    """
    from comet.passes.comet.lower_to_comet import lower_function, plan_lowering

    module = func.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    copy = module.clone()
    for other in compute_functions(copy):
        if other.sym_name == func.sym_name:
            lower_function(other, plan_lowering(other, system, absorb=absorb))
    return copy


def _node_figures(
    nodes: Sequence[Operation], estimate: Estimate
) -> Iterator[tuple[Operation, Figures]]:
    """Pair nodes with their estimates; none if lowering has changed their number."""
    if len(nodes) != len(estimate.nodes):
        return
    for op, node in zip(nodes, estimate.nodes, strict=True):
        yield op, _figures(node, estimate.model)


def _figures(node: NodeEstimate, model: ModelName) -> Figures:
    return Figures(
        Model(model),
        TimeUnit.CYCLES,
        node.cycles,
        compulsory_stalls=node.compulsory_stalls,
        optional_stalls=node.optional_stalls,
        memory_window=node.memory_window,
    )


def total_figures(estimate: Estimate) -> Figures:
    """Return the figures of a whole mapping."""
    return Figures(
        Model(estimate.model),
        TimeUnit.CYCLES,
        estimate.latency,
        energy=estimate.energy,
        compulsory_stalls=estimate.compulsory_stalls,
        optional_stalls=estimate.optional_stalls,
        memory_window=estimate.memory_window,
    )


def _kernel_estimates(
    func: FuncOp, system: SystemOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """Price launch plans with their taxes; without a plan, add up the kernels."""
    programs = [op for op in func.walk() if isinstance(op, ProgramOp)]
    if not programs:
        yield func, _launched_one_by_one(func, system, model)
    for program in programs:
        prices = _program_estimates(program, system, model)
        yield func, prices[0][1]
        yield from prices


def _launched_one_by_one(func: FuncOp, system: SystemOp, model: ModelName) -> Figures:
    """Add up the kernels of a GPU and their launches."""
    kernels = [op for op in func.walk() if isinstance(op, SpatialOp)]
    figures = [estimate_of(op) for op in kernels]
    latencies = [each.latency for each in figures if each is not None]
    if len(latencies) != len(kernels):
        raise PassFailedException(
            f"annotate-cost: the kernels of @{func.sym_name.data} have no estimates; "
            "run tile first"
        )
    launches = device_of(system).launch * 1e9 * len(kernels)
    latency = sum(latencies) + launches
    return Figures(Model(model), TimeUnit.NS, latency, launch_tax=launches)


def _program_estimates(
    program: ProgramOp, system: SystemOp, model: ModelName
) -> list[tuple[Operation, Figures]]:
    """Return the figures of a launch plan, then those of its kernels and barriers."""
    from comet.cost.from_ir.program import machine_for, plan_of, steps_of
    from comet.cost.gpu.taxes import taxes_by_step, taxes_of
    from comet.cost.gpu.timeline import play

    machine = machine_for(program, system)
    timeline = play(plan_of(program, system), machine)
    whole = taxes_of(timeline.segments, timeline.ranks)
    found: list[tuple[Operation, Figures]] = [(program, _tax_figures(whole, model))]
    by_step = taxes_by_step(timeline)
    for name, op in steps_of(program).items():
        if name in by_step:
            found.append((op, _tax_figures(by_step[name], model)))
    return found


def _tax_figures(taxes: Taxes, model: ModelName) -> Figures:
    """Round to whole nanoseconds, so that the parts still add up."""
    parts = (taxes.busy, taxes.launch, taxes.synchronization, taxes.locality)
    busy, launch, synchronization, locality = (round(part * 1e9) for part in parts)
    return Figures(
        Model(model),
        TimeUnit.NS,
        busy + launch + synchronization + locality,
        launch_tax=launch,
        synchronization_tax=synchronization,
        locality_tax=locality,
    )
