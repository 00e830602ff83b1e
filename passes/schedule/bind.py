"""The `bind` pass: when the siblings of a node run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Literal, Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective import CollectiveOp
from comet.dialects.schedule.attributes import BindingAttr, BindingKind
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.annotate_cost.accelerator import lowered_copy, total_figures
from comet.passes.comet.lower_to_comet.legality import check_legality
from comet.passes.pipeline import ChoosingPass
from comet.passes.search import Candidate, Cost, Found, Goal, cheapest

KINDS = (BindingKind.SEQUENTIAL, BindingKind.PIPELINE, BindingKind.PARALLEL)
"""The candidates of `auto`; of equal ones the first is taken."""

BIND = "schedule.bind"
"""The attribute of a node for when its next sibling runs."""


@dataclass(frozen=True)
class BindPass(ChoosingPass):
    """
    Bind every node and collective to its next sibling.

    Before: a tile tree. After: the same with a `schedule.bind` on all but the last
    sibling of each body. With `parallel`, no sibling may use a result of the one before
    it. Rejects a function at another level; `auto` needs an accelerator's hardware.
    """

    name = "bind"

    kind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """
    One after the other, overlapped from tile to tile, or at the same time; or for each
    body the cheapest of these.
    """

    model: Literal["tool", "paper", "ideal"] = "paper"
    """The cost model for choices that are `auto`, see `annotate-cost`."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    """What is minimized: cycles, pJ, or their product."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_at(op, self.name, IRLevel.SCHEDULE):
            if self.kind == "auto":
                bind_by_cost(
                    func, attached_system(op), Goal(self.model, self.objective)
                )
            else:
                kind = BindingKind(self.kind)
                bind(list(plan_bindings(func.body.block, kind)), kind)

    def settled(self, module: ModuleOp) -> Self:
        """Return the pass with the kind of all bindings, if they are of one kind."""
        kinds = {
            attribute.data
            for func in compute_functions(module)
            for op in func.walk()
            if isinstance(attribute := op.attributes.get(BIND), BindingAttr)
        }
        if self.kind != "auto" or len(kinds) != 1:
            return self
        return replace(self, kind=str(kinds.pop()))


def bind(firsts: Sequence[Operation], kind: BindingKind) -> None:
    """Bind each of `firsts` to its next sibling."""
    for first in firsts:
        first.attributes[BIND] = BindingAttr(kind)


def bind_by_cost(func: FuncOp, system: SystemOp, goal: Goal) -> None:
    """
    Bind the siblings of each body by the kind that makes `func` cheapest.

    Bodies are decided one after the other, outermost first, starting from sequential. A
    kind whose files `lower-to-comet` or the COMET tool rejects, for example for
    capacity, is not taken; if these reject all, siblings stay sequential.
    """
    nodes = [op for op in func.walk() if isinstance(op, NodeOp)]
    blocks = [func.body.block, *(node.body.block for node in nodes)]
    several = [block for block in blocks if len(siblings_in(block)) > 1]

    @cache
    def price(kinds: tuple[BindingKind, ...]) -> Found[tuple[BindingKind, ...]]:
        for block, kind in zip(several, kinds, strict=True):
            bind(bound_siblings(block, kind), kind)
        return _price(func, system, goal, kinds)

    best = (BindingKind.SEQUENTIAL,) * len(several)
    for index, block in enumerate(several):
        options = [(*best[:index], kind, *best[index + 1 :]) for kind in KINDS]
        candidates = [
            Candidate(str(kinds[index]), partial(price, kinds)) for kinds in options
        ]
        with suppress(PassFailedException):
            best = cheapest("bind", _described(block), candidates, goal).made
    for block, kind in zip(several, best, strict=True):
        bind(siblings_in(block)[:-1], kind)


def _price(
    func: FuncOp, system: SystemOp, goal: Goal, kinds: tuple[BindingKind, ...]
) -> Found[tuple[BindingKind, ...]]:
    """Price `func` with these bindings; raises if no legal files express them."""
    files = lowered_copy(func, system, absorb=True)
    check_legality(files)
    estimate_module(files, "tool")
    estimate = estimate_module(files, goal.model)
    cost = Cost(estimate.latency, estimate.energy)
    return Found(kinds, cost, total_figures(estimate).limit)


def _described(block: Block) -> str:
    """Name the op with the body `block`, by its result."""
    op = block.parent_op()
    if op is None or isinstance(op, FuncOp):
        return "the function"
    made = ", ".join(f"%{result.name_hint}" for result in op.results)
    return f"the node that makes {made}"


def siblings_in(block: Block) -> list[Operation]:
    """Return the nodes and collectives of `block`."""
    return [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)]


def bound_siblings(block: Block, kind: BindingKind) -> list[Operation]:
    """
    Return the siblings in `block` that are bound to the next one.

    Raises PassFailedException if `kind` is parallel and they cannot run in parallel.
    """
    siblings = siblings_in(block)
    for first, second in pairwise(siblings):
        if kind is BindingKind.PARALLEL and set(first.results) & set(second.operands):
            raise PassFailedException(
                f"bind: {second.name} uses what the {first.name} before it makes; they "
                "cannot run in parallel, take kind=pipeline or kind=sequential"
            )
    return siblings[:-1]


def plan_bindings(block: Block, kind: BindingKind) -> Iterator[Operation]:
    """
    Yield every op in `block`, and in the nodes below, that is bound to its successor.

    Raises PassFailedException if siblings cannot run in parallel.
    """
    yield from bound_siblings(block, kind)
    for op in siblings_in(block):
        if isinstance(op, NodeOp):
            yield from plan_bindings(op.body.block, kind)
