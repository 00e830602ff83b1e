"""The `bind` pass: when the siblings of a node run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import CollectiveOp
from comet.dialects.schedule_attributes import BindingAttr, BindingKind
from comet.dialects.schedule_node import NodeOp
from comet.passes.levels import IRLevel, functions_at


@dataclass(frozen=True)
class BindPass(ModulePass):
    """
    Bind every node and collective to its next sibling.

    Before: a tile tree. After: the same with a `schedule.bind` on all but the last
    sibling of each body. `parallel` asks that no sibling uses what the one before it
    makes. Rejects a function at another level.
    """

    name = "bind"

    kind: Literal["sequential", "pipeline", "parallel"] = "sequential"
    """One after the other, overlapped from tile to tile, or at the same time."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = BindingKind(self.kind)
        for func in functions_at(op, self.name, IRLevel.SCHEDULE):
            bindings = list(plan_bindings(func.body.block, kind))
            for first in bindings:
                first.attributes["schedule.bind"] = BindingAttr(kind)


def plan_bindings(block: Block, kind: BindingKind) -> Iterator[Operation]:
    """
    Yield every op in `block`, and in the nodes below, that is bound to its successor.

    Raises PassFailedException if siblings cannot run in parallel.
    """
    siblings = [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)]
    for first, second in pairwise(siblings):
        if kind is BindingKind.PARALLEL and set(first.results) & set(second.operands):
            raise PassFailedException(
                f"bind: {second.name} uses what the {first.name} before it makes; they "
                "cannot run in parallel, take kind=pipeline or kind=sequential"
            )
        yield first
    for op in siblings:
        if isinstance(op, NodeOp):
            yield from plan_bindings(op.body.block, kind)
