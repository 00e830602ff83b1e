"""
`deallocate-buffers`: `tl` -> the same, where buffers live as short as possible.

A buffer is allocated right before the first step of the launch plan that uses it, and
deallocated right after the last one. Later buffers reuse the memory, so that a model
needs memory for the buffers of one layer only. Results, buffers that are viewed in
another shape, and buffers that a plan allocates once are never deallocated.
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
    """The first and the last step of a launch plan that use a buffer."""

    buffer: tl.EmptyOp
    first: Operation
    last: Operation | None
    """None for a buffer that is not deallocated."""


def lifetimes(plan: Block) -> Iterator[Lifetime]:
    """Yield the lifetime of each buffer that a step uses."""
    number = {op: index for index, op in enumerate(plan.ops)}
    for op in plan.ops:
        if isinstance(op, tl.EmptyOp):
            users = [use.operation for use in op.result.uses]
            users.sort(key=number.__getitem__)
            if users:
                ends = all(isinstance(u, tl.ClearOp | tl.LaunchOp) for u in users)
                yield Lifetime(op, users[0], users[-1] if ends else None)


def rewrite(found: Iterable[Lifetime]) -> None:
    """Allocate each buffer before its first step, and free it after its last one."""
    for each in found:
        each.buffer.detach()
        Rewriter.insert_op(each.buffer, InsertPoint.before(each.first))
        if each.last is not None:
            end = tl.DeallocOp(each.buffer.result)
            Rewriter.insert_op(end, InsertPoint.after(each.last))
