"""
`deallocate-buffers`: `tl` -> the same, with buffers only as long as they are needed.

A buffer is allocated before the first step that needs it, and deallocated after the
last one, so that later ones can have its memory: a model takes the buffers of one layer
at a time. Leaves results, buffers that are viewed in another shape, and those of plans,
which are allocated once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects import tl


@dataclass(frozen=True)
class DeallocateBuffersPass(ModulePass):
    """Allocate buffers late, and deallocate them early."""

    name = "deallocate-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            if isinstance(func, FuncOp) and not func.is_declaration:
                rewrite(tuple(lifetimes(func.body.block)))


@dataclass(frozen=True)
class Lifetime:
    """The steps of a launch plan for which a buffer is needed."""

    buffer: tl.EmptyOp
    first: Operation
    last: Operation | None
    """None for a buffer that is needed after the last step, too."""


def lifetimes(plan: Block) -> Iterator[Lifetime]:
    """Yield how long each buffer that a step uses is needed."""
    number = {op: index for index, op in enumerate(plan.ops)}
    for op in plan.ops:
        if isinstance(op, tl.EmptyOp):
            users = [use.operation for use in op.result.uses]
            users.sort(key=number.__getitem__)
            if users:
                ends = all(isinstance(u, tl.ClearOp | tl.LaunchOp) for u in users)
                yield Lifetime(op, users[0], users[-1] if ends else None)


def rewrite(found: Iterable[Lifetime]) -> None:
    """Move each allocation to where it is needed, and end it there."""
    for each in found:
        each.buffer.detach()
        Rewriter.insert_op(each.buffer, InsertPoint.before(each.first))
        if each.last is not None:
            end = tl.DeallocOp(each.buffer.result)
            Rewriter.insert_op(end, InsertPoint.after(each.last))
