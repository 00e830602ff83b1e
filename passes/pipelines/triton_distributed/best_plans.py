"""
Choices that compare whole launch plans, exchanges between ranks included.

Each of these passes chooses by an estimate that leaves something out, so some of its
choices are compared again by the launch plans that they lead to:

* The form of all-reduces. As one op, each rank sends all its terms to all others. As a
  reduce-scatter and an all-gather, R ranks send 2 / R of these bytes, in one more
  exchange.
* Shardings: `choose-shardings` estimates the time of ops, not of kernels.
* Splits: products are tried in small functions, without the ops that follow them.
* Fusion: `fuse` prices kernels without exchanges. The tiles of a kernel that reads
  values of other ranks are within the shards of these, or it waits for each of them;
  so fewer kernels may be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
from comet.passes.search.answers import Answers
from comet.passes.sharding.choose_shardings import (
    ChooseShardingsPass,
    alternatives,
)
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.place_collectives.kinds import Kind

MOST_SHARDINGS = 3
"""The most shardings whose launch plans are compared."""

FORMS: tuple[Kind, ...] = ("allreduce", "reduce_scatter_all_gather")

MOST_TIMED = 32
"""Launch plans whose times are remembered: more than are compared for a module."""

_TIMES = Answers[PlanTime](MOST_TIMED)
"""The times of launch plans, by the module before `fuse` and all that follows."""


def time_of(
    ctx: Context, module: ModuleOp, passes: Iterable[ModulePass], options: Hashable
) -> PlanTime:
    """
    Run passes up to `annotate-cost`; return the time of all launch plans.

    `options` say which passes follow `fuse`. Modules that are equal there are fused and
    priced once: the trials of shardings, of all-reduces and of strategies have plans in
    common.
    """
    left = iter(passes)
    for pass_ in left:
        if isinstance(pass_, FusePass):
            with _TIMES.to((str(module), pass_, options)) as answer:
                if answer.found is None:
                    pass_.apply(ctx, module)
                    answer.found = time_after(ctx, module, left)
                return answer.found
        pass_.apply(ctx, module)
        if isinstance(pass_, AnnotateCostPass):
            break
    return _annotated_time(module)


def time_after(
    ctx: Context, module: ModuleOp, passes: Iterator[ModulePass]
) -> PlanTime:
    """Run the passes that follow `fuse`, up to `annotate-cost`; return the time."""
    for pass_ in passes:
        pass_.apply(ctx, module)
        if isinstance(pass_, AnnotateCostPass):
            break
    return _annotated_time(module)


def _annotated_time(module: ModuleOp) -> PlanTime:
    """Return what the launch plans of all functions take, 0 without estimates."""
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
        Return the pass with the trial whose launch plan is fastest, of the first few.

    `time` compiles a copy of `module` with shardings, and prices the launch plan. If it
    rejects all trials, the first one is taken: other options may compile it.

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

    `fuse` chooses by prices of kernels without waiting for other ranks, and small
    kernels wait more often. So its choice is compared with priority fusion, and in
    short regions with one kernel. `time` compiles the module with another such pass,
    and prices the launch plan. Regions with one product stay as `fuse` makes them.
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

    `time` compiles the module with some splits, and prices the launch plan. If it
    rejects the module with and without splits, there are none: other options may
    compile it.
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
    """Return the number of products in a block and in its folds."""
    return sum(isinstance(op, ContractOp) for op in block.walk())


def exchange_may_gain(module: ModuleOp, found: Iterable[AllReduceOp]) -> bool:
    """
    Return whether an all-reduce as one op takes longer than an exchange of flags.

    False for two ranks, which send the same bytes in both forms.
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
