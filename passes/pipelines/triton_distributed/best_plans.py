"""
Choices between passes by whole launch plans, with what ranks exchange in them.

How ranks add up their terms: an all-reduce that GPUs carry out sends all terms of a
rank to all others. A reduce-scatter and an all-gather send a shard of the terms to
each, and a shard of the sums to all: of R ranks, 2 / R of the bytes, in one exchange
more.

What ranks shard: `choose-shardings` estimates the time of ops, and not of kernels.

What ranks split: products are tried in small functions, without what follows them.

How many kernels ranks launch: `fuse` prices kernels before they exchange anything. A
kernel that reads what other ranks send has tiles within their shards, or waits for
them; so fewer kernels than those that `fuse` takes may be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import SupportsFloat

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.collective import payload_of
from comet.cost.from_ir.gpus import machine_of
from comet.cost.gpu.interconnect import send_time
from comet.cost.gpu.taxes import PlanTime
from comet.dialects.arch import attached_system
from comet.dialects.collective import AllReduceOp
from comet.dialects.compound import ContractOp
from comet.dialects.cost import estimate_of, sum_of_figures
from comet.dialects.errors import called
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.analysis.levels import compute_block
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.graph.split import SplitPass
from comet.passes.graph.split.choose import is_long
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.strategy import Name
from comet.passes.search import cheapest, timed
from comet.passes.sharding.choose_shardings import (
    ChooseShardingsPass,
    alternatives,
)
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.place_collectives.kinds import Kind

MOST_SHARDINGS = 3
"""The most shardings whose launch plans are compared."""

FORMS: tuple[Kind, ...] = ("allreduce", "reduce_scatter_all_gather")


def time_of(ctx: Context, module: ModuleOp, passes: Iterable[ModulePass]) -> PlanTime:
    """Run passes up to `annotate-cost`; return what the launch plans of all take."""
    for pass_ in passes:
        pass_.apply(ctx, module)
        if isinstance(pass_, AnnotateCostPass):
            break
    found = map(estimate_of, compute_functions(module))
    if not (known := [figures for figures in found if figures is not None]):
        return PlanTime(0.0)
    whole = sum_of_figures(known)
    return PlanTime(1e-9 * whole.latency, whole.limit)


def best_reductions(
    module: ModuleOp,
    place: PlaceCollectivesPass,
    time: Callable[[PlaceCollectivesPass], SupportsFloat],
) -> PlaceCollectivesPass:
    """
    Return `place` with the form of all-reduces in `module` that is fastest.

    `time` compiles the module with another such pass, and prices the launch plan.
    """
    found = [op for op in module.walk() if isinstance(op, AllReduceOp)]
    if not exchange_may_gain(module, found):
        return place
    passes = [replace(place, kind=kind) for kind in FORMS]
    candidates = [timed(each.kind, each, partial(time, each)) for each in passes]
    values = ", ".join(called(op.input) for op in found)
    return cheapest("all-reduces", values, candidates).result


def best_shardings(
    module: ModuleOp, time: Callable[[ModuleOp], SupportsFloat]
) -> ChooseShardingsPass:
    """
    Return the pass with that of its first trials whose launch plan is fastest.

    `time` compiles a copy of `module` with shardings, and prices the launch plan.
    Where it rejects all, the first is taken, as other options may compile it.
    """
    copies = list(alternatives(module, MOST_SHARDINGS))
    if len(copies) == 1:
        return ChooseShardingsPass()
    candidates = [
        timed(f"trial={trial}", ChooseShardingsPass(trial), partial(time, copy))
        for trial, copy in enumerate(copies)
    ]
    try:
        found = cheapest("plans of shardings", function_names(module), candidates)
    except PassFailedException:
        return ChooseShardingsPass()
    return found.result


def best_fusion(
    module: ModuleOp, fuse: FusePass, time: Callable[[FusePass], SupportsFloat]
) -> FusePass:
    """
    Return `fuse` with the strategy whose launch plan is fastest.

    Prices of kernels, by which `fuse` chooses, have no waiting for other ranks, which
    smaller kernels do more often. So its choice is compared with priority fusion, and
    in short regions with one kernel. `time` compiles the module with another such
    pass, and prices the launch plan. Regions with one product stay as `fuse` makes
    them.
    """
    blocks = [compute_block(func) for func in compute_functions(module)]
    products = max((_products(block) for block in blocks), default=0)
    if products < 2:
        return fuse
    others: tuple[Name, ...] = ("priority", "full")
    if is_long(module):
        others = ("priority",)
    passes = {each: replace(fuse, strategy=each) for each in (fuse.strategy, *others)}
    candidates = [
        timed(name, each, partial(time, each)) for name, each in passes.items()
    ]
    return cheapest("kernels of ranks", function_names(module), candidates).result


def best_splits(
    module: ModuleOp,
    splits: Sequence[SplitPass],
    time: Callable[[Sequence[SplitPass]], SupportsFloat],
) -> Sequence[SplitPass]:
    """
    Return `splits` if the launch plan is faster with them, none otherwise.

    `time` compiles the module with some of them, and prices the launch plan. Where it
    rejects both, there are none, as other options may compile it.
    """
    if not splits:
        return ()
    labels = "; ".join(split.label for split in splits)
    candidates = [
        timed(name, tried, partial(time, tried))
        for name, tried in (("none", ()), (labels, splits))
    ]
    try:
        found = cheapest("splits of ranks", function_names(module), candidates)
    except PassFailedException:
        return ()
    return found.result


def best_group(
    module: ModuleOp, sizes: Sequence[int], time: Callable[[int], SupportsFloat]
) -> int:
    """Return the number of programs in a group with the fastest launch plan."""
    candidates = [timed(f"ctas={n}", n, partial(time, n)) for n in sizes]
    return cheapest("groups", function_names(module), candidates).result


def _products(block: Block) -> int:
    """Return how many products there are in a block, also in its folds."""
    return sum(isinstance(op, ContractOp) for op in block.walk())


def exchange_may_gain(module: ModuleOp, found: Iterable[AllReduceOp]) -> bool:
    """
    Return whether some all-reduces take longer, as they are, than an exchange of flags.

    Of two ranks, each sends the same bytes in both forms.
    """
    system, saved, exchange = attached_system(module), 0.0, 0.0
    for op in found:
        machine = machine_of(system, op.group_size)
        net, terms = machine.net, payload_of(op.input).bytes
        exchange = net.latency + net.signal
        if op.group_size > 2:
            loads = op.group_size * terms / machine.device.memory.hbm_bandwidth
            saved += float(send_time(terms, net)) + loads
    return saved > exchange
