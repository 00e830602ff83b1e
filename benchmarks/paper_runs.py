"""What benchmarks/paper.py runs: strategies, and the search for mappings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from paper_programs import SHAPES, Machine, Shape, elementary
from paper_tool_search import search_tool
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.api.program import installed_context
from comet.cost.estimate import CostError, ModelName
from comet.cost.from_ir.hardware import hardware_of
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import attached_system
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.strategy import STRATEGIES as FUSIONS
from comet.passes.schedule.fuse.strategy import STRATEGY
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile.accelerator import search
from comet.passes.schedule.tile.template import Template, make_template
from comet.passes.sharding.distribute.auto import SHARDED_DIMS

MODELS: tuple[ModelName, ...] = ("paper", "tool")

REFUSALS = (CostError, PassFailedException)
"""How search and pipeline say that there is no valid mapping, or no price for one."""

CLAIMED = {"gemm_softmax": 1.42, "gemm_layernorm": 3.46, "attention": 1.82}
"""Speedups over unfused in the abstract of the paper, where they read *up to*."""


@dataclass(frozen=True)
class Strategy:
    """A strategy of the paper, as options of the pipeline."""

    options: CometAcceleratorPass
    only: tuple[str, ...] = ()
    """The ops that it is for; all if there are none."""


HEADS_AND_ROWS = ("H", "M")
GEMMS = ("gemm_softmax", "gemm_layernorm")

STRATEGIES: Mapping[str, Strategy] = {
    "unfused": Strategy(CometAcceleratorPass(strategy="none")),
    "fused-dist": Strategy(CometAcceleratorPass(strategy="isolate_contractions")),
    "fused-GEMM-dist, through GB": Strategy(CometAcceleratorPass(strategy="partial")),
    "fused-GEMM-dist": Strategy(CometAcceleratorPass(strategy="full")),
    "fused-GEMM-root": Strategy(
        CometAcceleratorPass(strategy="full", op="contract", kind="gather"), GEMMS
    ),
    "streamed, by M": Strategy(
        CometAcceleratorPass(strategy="full", stream=True), ("gemm_softmax",)
    ),
    "comet's choice": Strategy(CometAcceleratorPass(dim=("auto",)), GEMMS),
    "UA, by H and M": Strategy(
        CometAcceleratorPass(strategy="none", dim=HEADS_AND_ROWS, stream=False),
        only=("attention",),
    ),
    "PFA, by H and M": Strategy(
        CometAcceleratorPass(strategy="partial", dim=HEADS_AND_ROWS, stream=False),
        only=("attention",),
    ),
    "fused, by H and M": Strategy(
        CometAcceleratorPass(strategy="full", dim=HEADS_AND_ROWS, stream=False),
        only=("attention",),
    ),
    "FA, by H and M": Strategy(
        CometAcceleratorPass(strategy="full", dim=HEADS_AND_ROWS, stream=True),
        only=("attention",),
    ),
}


def strategies_for(op: str) -> Sequence[str]:
    """Return the names of the strategies that an op is compiled by."""
    return [name for name, s in STRATEGIES.items() if op in (s.only or (op,))]


@dataclass(frozen=True)
class Cost:
    """What the best mapping that was found costs."""

    latency: float
    """Cycles."""
    energy: float
    """pJ."""


@dataclass(frozen=True)
class Row:
    """The best mappings that were found for one program on one machine."""

    op: str
    machine: Machine
    shape: Shape
    bound: float
    """Cycles that DRAM needs for the inputs and the result alone."""
    costs: Mapping[str, Mapping[ModelName, Cost]]
    """By strategy and model; a model is missing where there is no valid mapping."""

    def cost(self, strategy: str, model: ModelName) -> Cost | None:
        """Return what a strategy costs, None if it has no valid mapping."""
        return self.costs[strategy].get(model)

    def gain(self, strategy: str, model: ModelName, figure: str) -> float | None:
        """Return the unfused figure over that of `strategy`: above 1 is better."""
        unfused, own = self.cost("unfused", model), self.cost(strategy, model)
        if unfused is None or own is None:
            return None
        if figure == "latency":
            return unfused.latency / own.latency
        return unfused.energy / own.energy


def decided(module: ModuleOp, options: CometAcceleratorPass) -> CometAcceleratorPass:
    """Return the options with what `auto` decides for `dim` and `strategy` in them."""
    if options.strategy != "auto":
        return options
    options, context = (
        replace(options, stream=options.stream is True),
        installed_context(),
    )
    configs = tuple(options.configs(context, module))
    notes = options.found(context, module, configs).result.notes
    if isinstance(dims := notes.get(SHARDED_DIMS), StringAttr):
        options = replace(options, dim=tuple(dims.data.split(",")))
    return next(
        replace(options, strategy=strategy)
        for strategy in FUSIONS
        if notes[STRATEGY] == StringAttr(strategy)
    )


def template_of(module: ModuleOp, options: CometAcceleratorPass) -> Template:
    """Return the tile tree that the pipeline makes, without factors."""
    fused, context = module.clone(), installed_context()
    for part in parts_of(fused, options):
        part.apply(context, fused)
        if isinstance(part, FusePass):
            break
    return make_template(next(compute_functions(fused)), attached_system(fused))


def parts_of(module: ModuleOp, options: CometAcceleratorPass) -> tuple[ModulePass, ...]:
    """Return the passes after `decompose`, with `stream` only where it is asked for."""
    options = replace(options, stream=options.stream is True)
    return options.passes_for(
        module, next(options.configs(installed_context(), module))
    )


def price_files(
    module: ModuleOp, options: CometAcceleratorPass, plan: str, model: ModelName
) -> Cost:
    """Price the COMET files that the pipeline makes with given factors."""
    lowered, context = module.clone(), installed_context()
    for part in parts_of(lowered, replace(options, factors=plan)):
        part.apply(context, lowered)
    estimate = estimate_module(lowered, model)
    return Cost(estimate.latency, estimate.energy)


def best(
    module: ModuleOp, options: CometAcceleratorPass, budget: int
) -> dict[ModelName, Cost]:
    """
    Search under each model, and price what the pipeline then makes.

    A model is missing where no mapping is found that it can price.
    """
    try:
        options = decided(module, options)
        template = template_of(module, options)
        mended = search(template)
    except REFUSALS as error:
        print(f"no mapping: {error}", file=sys.stderr)
        return {}
    costs: dict[ModelName, Cost] = {}
    for model in MODELS:
        tuned = search_tool(template, mended, budget) if model == "tool" else mended
        for plan in dict.fromkeys((tuned.entries(), mended.entries())):
            try:
                costs[model] = price_files(module, options, format_plan(plan), model)
                break
            except REFUSALS as error:
                print(f"no price under {model}: {error}", file=sys.stderr)
    return costs


def evaluate(ops: Iterable[str], budget: int) -> Iterator[Row]:
    """Yield the best mappings of every program, `tool` pricing `budget` per search."""
    for op in ops:
        for machine, shapes in SHAPES[op].items():
            for shape in shapes:
                module = elementary(op, machine, shape)
                names = strategies_for(op)
                costs = {n: best(module, STRATEGIES[n].options, budget) for n in names}
                yield Row(op, machine, shape, dram_bound(module), costs)


def dram_bound(module: ModuleOp) -> float:
    """Return the cycles that a program's inputs and result take to cross DRAM."""
    func = next(compute_functions(module))
    returned = func.get_return_op()
    values = [*func.args, *(() if returned is None else returned.operands)]
    bits = sum(
        prod(extents_of(value).values()) * element_type_of(value).bitwidth
        for value in values
    )
    memory = hardware_of(attached_system(module)).levels[0].memory
    return bits / 8 / memory.child_read_bandwidth
