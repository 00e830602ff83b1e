"""Estimates on accelerators: of mappings, of chains of them, and of tile trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.cost.estimate import CostError, Estimate, ModelName, NodeEstimate
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import SystemOp
from comet.dialects.chain import chained_mappings
from comet.dialects.collective import CollectiveOp
from comet.dialects.comet import UNPRICED, MappingOp, TileOp
from comet.dialects.comet import CollectiveOp as CometCollectiveOp
from comet.dialects.cost import Figures, Model, TimeUnit, sum_of_figures
from comet.dialects.errors import OpError
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions, in_copy, module_of
from comet.passes.comet.lower_to_comet import lower_function, plan_lowering

PRICED = NodeOp
"""A function without such an op cannot be priced."""


def mapping_estimates(
    module: ModuleOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """
    Yield the estimates of the mapping of a module, if it has one, and of its nodes.

    Raises CostError if the mapping is illegal.
    """
    if any(isinstance(op, MappingOp) for op in module.body.block.ops):
        yield from _mapping_and_nodes(module, model)


def _mapping_and_nodes(
    module: ModuleOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """Yield the estimate of the mapping of a module, then those of its nodes."""
    estimate = estimate_module(module, model)
    mapping = next(op for op in module.body.block.ops if isinstance(op, MappingOp))
    yield mapping, total_figures(estimate)
    nodes = [op for op in mapping.walk() if isinstance(op, TileOp | CometCollectiveOp)]
    yield from _node_figures(nodes, estimate)


def chain_estimates(
    module: ModuleOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """
    Yield the estimates of lowered mappings in chains, and of functions with a chain.

    Mappings run one after the other, as each reads the results of earlier ones from the
    root memory; so times and energies of a chain are sums. Raises CostError for a
    mapping that cannot be priced, PassFailedException for one that is not lowered.
    """
    for func in compute_functions(module):
        mappings: list[tuple[Operation, Figures]] = []
        for op in chained_mappings(func):
            if op.function() is not None:
                raise OpError(
                    op,
                    f"annotate-cost: the mapping @{op.symbol} has no COMET files yet; "
                    "run lower-to-comet in its module, by nested{module=.. passes=..}",
                )
            total, *nodes = _mapping_and_nodes(op.module(), model)
            yield total
            yield from nodes
            mappings.append((op, total[1]))
        if mappings:
            yield from mappings
            yield func, sum_of_figures(figures for _, figures in mappings)


def function_estimates(
    func: FuncOp, system: SystemOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """
    Yield the estimates of a function and of its nodes, by a lowered copy.

    If a lowering with a node for each sibling has no price, only the function has an
    estimate.
    """
    files = lowered_copy(func, system, absorb=False)
    merges = any(UNPRICED in op.attributes for op in files.ops)
    merged = lowered_copy(func, system, absorb=True) if merges else files
    estimate = estimate_module(merged, model)
    yield func, total_figures(estimate)
    if merges:
        try:
            estimate = estimate_module(files, model)
        except CostError:
            return
    nodes = [op for op in func.walk() if isinstance(op, NodeOp | CollectiveOp)]
    outermost = [op for op in nodes if op.parent_op() is func]
    if len(outermost) > 1:  # they become one node, the root
        nodes = [op for op in nodes if op not in outermost]
        estimate = replace(estimate, nodes=estimate.nodes[1:])
    yield from _node_figures(nodes, estimate)


def lowered_copy(func: FuncOp, system: SystemOp, *, absorb: bool) -> ModuleOp:
    """
    Return a copy of the module of `func` in which `func` is lowered to COMET files.

    Raises PassFailedException for a tree that the files cannot express.
    """
    copy = in_copy(func)
    module = module_of(copy)
    lower_function(copy, plan_lowering(copy, system, absorb=absorb))
    return module


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
