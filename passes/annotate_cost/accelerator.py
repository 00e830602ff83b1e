"""What mappings cost on accelerators: those of COMET files, or what trees become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError, Estimate, ModelName, NodeEstimate
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import SystemOp
from comet.dialects.collective import CollectiveOp
from comet.dialects.comet import CollectiveOp as CometCollectiveOp
from comet.dialects.comet import MappingOp, TileOp
from comet.dialects.cost import Figures, Model, TimeUnit, sum_of_figures
from comet.dialects.dataflow.chain import chained_mappings
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.comet.lower_to_comet import lower_function, plan_lowering

PRICED = NodeOp
"""The ops of a function that is priced."""


def mapping_estimates(
    module: ModuleOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """Price the mapping of a module, if it has one; raises CostError where illegal."""
    mappings = [op for op in module.body.block.ops if isinstance(op, MappingOp)]
    if not mappings:
        return
    mapping = mappings[0]
    estimate = estimate_module(module, model)
    yield mapping, total_figures(estimate)
    nodes = [op for op in mapping.walk() if isinstance(op, TileOp | CometCollectiveOp)]
    yield from _node_figures(nodes, estimate)


def chain_estimates(
    module: ModuleOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """
    Price the chains of mappings of a module, whose mappings are lowered; and each one.

    Mappings follow each other: the first reads of one are of what an earlier one has
    written to the root memory, so times and energies of a chain are sums.
    """
    for func in compute_functions(module):
        parts = list(chained_mappings(func))
        for op in parts:
            if op.function() is not None:
                raise PassFailedException(
                    f"annotate-cost: the mapping @{op.symbol} has no COMET files yet; "
                    "run lower-to-comet in its module, by nested{module=.. passes=..}"
                )
            yield from mapping_estimates(op.module(), model)
        if parts:
            prices = [estimate_module(op.module(), model) for op in parts]
            pairs = zip(parts, map(total_figures, prices), strict=True)
            yield from pairs
            yield func, sum_of_figures(map(total_figures, prices))


def function_estimates(
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
    module = func.parent_op()
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
        roofline=estimate.roofline if estimate.is_artifact else None,
    )
