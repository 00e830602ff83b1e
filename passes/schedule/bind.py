"""The `bind` pass: when the siblings of a node run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective import CollectiveOp
from comet.dialects.schedule.attributes import BindingAttr, BindingKind
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.annotate_cost import lowered_copy
from comet.passes.comet.lower_to_comet.legality import check_legality
from comet.passes.pipeline import ChoosingPass

BIND = "schedule.bind"
"""The attribute of a node that says when its next sibling runs."""


@dataclass(frozen=True)
class BindPass(ChoosingPass):
    """
    Bind every node and collective to its next sibling.

    Before: a tile tree. After: the same with a `schedule.bind` on all but the last
    sibling of each body. `parallel` asks that no sibling uses what the one before it
    makes. Rejects a function at another level; `auto` needs an accelerator's hardware.
    """

    name = "bind"

    kind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """
    One after the other, overlapped from tile to tile, or at the same time; or for each
    body the cheapest of these.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_at(op, self.name, IRLevel.SCHEDULE):
            if self.kind == "auto":
                bind_by_cost(func, attached_system(op))
            else:
                kind = BindingKind(self.kind)
                bind(list(plan_bindings(func.body.block, kind)), kind)

    def settled(self, module: ModuleOp) -> Self:
        """Return the pass with the kind of all bindings, where they are of one kind."""
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


def bind_by_cost(func: FuncOp, system: SystemOp) -> None:
    """
    Bind the siblings of each body by the kind that makes `func` cheapest.

    Bodies are decided one after the other, outermost first, from all sequential. A kind
    whose files `lower-to-comet` or the COMET tool rejects, for capacity say, is not
    taken.
    """
    bind(
        list(plan_bindings(func.body.block, BindingKind.SEQUENTIAL)),
        BindingKind.SEQUENTIAL,
    )
    best = _price(func, system)
    for block in [func.body.block, *(op.body.block for op in _nodes(func))]:
        taken = BindingKind.SEQUENTIAL
        for kind in (BindingKind.PIPELINE, BindingKind.PARALLEL):
            if not (firsts := _siblings(block)) or not _allowed(block, kind):
                continue
            bind(firsts, kind)
            found = _price(func, system)
            if found is not None and (best is None or found < best):
                best, taken = found, kind
            bind(firsts, taken)


def _nodes(func: FuncOp) -> list[NodeOp]:
    return [op for op in func.walk() if isinstance(op, NodeOp)]


def _siblings(block: Block) -> Sequence[Operation]:
    """Return the nodes and collectives of `block` that have a next one."""
    return [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)][:-1]


def _allowed(block: Block, kind: BindingKind) -> bool:
    """Return whether the siblings of `block` may be bound by `kind`."""
    siblings = [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)]
    dependent = any(_feeds(first, second) for first, second in pairwise(siblings))
    return kind is not BindingKind.PARALLEL or not dependent


def _feeds(first: Operation, second: Operation) -> bool:
    return bool(set(first.results) & set(second.operands))


def _price(func: FuncOp, system: SystemOp) -> tuple[float, float] | None:
    """Return latency and energy of `func`, None where no legal files say it."""
    try:
        files = lowered_copy(func, system, absorb=True)
        check_legality(files)
        estimate_module(files, "tool")
        estimate = estimate_module(files, "paper")
    except (CostError, PassFailedException):
        return None
    return estimate.latency, estimate.energy


def plan_bindings(block: Block, kind: BindingKind) -> Iterator[Operation]:
    """
    Yield every op in `block`, and in the nodes below, that is bound to its successor.

    Raises PassFailedException if siblings cannot run in parallel.
    """
    siblings = [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)]
    for first, second in pairwise(siblings):
        if kind is BindingKind.PARALLEL and _feeds(first, second):
            raise PassFailedException(
                f"bind: {second.name} uses what the {first.name} before it makes; they "
                "cannot run in parallel, take kind=pipeline or kind=sequential"
            )
        yield first
    for op in siblings:
        if isinstance(op, NodeOp):
            yield from plan_bindings(op.body.block, kind)
