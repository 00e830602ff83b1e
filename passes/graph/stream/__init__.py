"""
`stream`: elementary or SPMD level -> same level, with folds.

Statistics over one dimension that depend on each other, such as the maximum and the sum
of exponentials of a softmax, become one `compound.fold`, which reads the dimension
once, in chunks of any size. All other reductions stay, those that ranks complete by
collectives among them. Rejects a dimension that no
function has, and a requested one with dependent reductions that no form matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import FoldOp, ReduceOp
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import IRLevel, compute_block, functions_at
from comet.passes.graph.emitter import Emitter
from comet.passes.graph.stream.form import Statistics, name_values, needed
from comet.passes.graph.stream.forms import FORMS
from comet.passes.sharding.shardings import shard_op, shardable_dims, sharding_of_op


@dataclass(frozen=True)
class StreamPass(ModulePass):
    """Compute statistics over one dimension as a running fold."""

    name = "stream"

    dim: str | None = None
    """The dimension to stream; all reduced dimensions, one after another, if unset."""

    counts: bool = True
    """Whether to use forms that count elements, with one number for all rows."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that is no reference."""
        functions = functions_at(op, self.name, IRLevel.ELEMENTARY, IRLevel.SPMD)
        if self.dim is not None:
            _check_dim(functions, self.dim)
        for func in functions:
            for dim in dims_of_reductions(func) if self.dim is None else (self.dim,):
                found = [
                    plan
                    for plan in plan_folds(func, dim)
                    if self.counts or not plan.form.counts
                ]
                if self.dim is not None and not found:
                    _check_independent(func, dim)
                for statistics in found:
                    insert_fold(statistics, dim)


def _check_dim(functions: Sequence[FuncOp], dim: str) -> None:
    dims = {d for f in functions for op in f.body.walk() for d in shardable_dims(op)}
    if dim not in dims:
        raise PassFailedException(
            f"stream: no op has the dimension {dim}; the module's dimensions are "
            f"{', '.join(sorted(dims)) or 'not named, run decompose first'}"
        )


def dims_of_reductions(func: FuncOp) -> tuple[str, ...]:
    """Return the dimensions that reductions of `func` reduce, in program order."""
    reductions = (op for op in compute_block(func).ops if isinstance(op, ReduceOp))
    return tuple(dict.fromkeys(dim for op in reductions for dim in op.reduced))


def plan_folds(func: FuncOp, dim: str) -> list[Statistics]:
    """Return the statistics over `dim` that folds will compute, in program order."""
    found: list[Statistics] = []
    covered: set[Operation] = set()
    for op in _reductions(func, dim):
        matches = (form.match(op, dim) for form in FORMS if op not in covered)
        statistics = next((match for match in matches if match is not None), None)
        if statistics is not None:
            found.append(statistics)
            covered.update(statistics.ops)
    return found


def _reductions(func: FuncOp, dim: str) -> list[ReduceOp]:
    ops = compute_block(func).ops
    return [op for op in ops if isinstance(op, ReduceOp) and dim in op.reduced]


def _check_independent(func: FuncOp, dim: str) -> None:
    """Raise PassFailedException if a reduction over `dim` depends on another one."""
    reductions = _reductions(func, dim)
    results: set[SSAValue] = {op.result for op in reductions}
    for op in reductions:
        if (other := needed(op.input, results)) is not None:
            names = ", ".join(form.name for form in FORMS)
            raise OpError(
                op,
                f"stream: {_named(op.result)} reduces {dim} and needs "
                f"{_named(other)}, which reduces {dim}, too, and no form matches both "
                f"({names}); write them as a compound.fold, or leave stream out",
            )


def _named(value: SSAValue) -> str:
    owner = value.owner
    name = owner.name if isinstance(owner, Operation) else "argument"
    return f"'{name}' op %{value.name_hint}" if value.name_hint else f"a '{name}' op"


def insert_fold(statistics: Statistics, dim: str) -> None:
    """Compute `statistics` by a fold, and erase ops that become unused."""
    first, form, inputs = statistics.ops[0], statistics.form, statistics.inputs
    for value in inputs:
        _move_before(first, value)
    emit = Emitter(first)
    init = list(form.init(emit, statistics))
    iter_args = [value.type for value in init]
    step = form.step_region(dim, [value.type for value in inputs], iter_args)
    for argument, value in zip(step.block.args, inputs, strict=False):
        argument.name_hint = value.name_hint
    fold = FoldOp(dim, inputs, init, step, form.merge_region(iter_args))
    Rewriter.insert_op(fold, InsertPoint.before(first))
    name_values(fold.outs, form.iter_args)
    results = form.results(emit, fold.outs)
    _copy_shardings(statistics, fold)
    for old, new in zip(statistics.replaced, results, strict=True):
        if old is not None:
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
    for op in reversed(statistics.ops):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _move_before(first: Operation, value: SSAValue) -> None:
    """Move the ops that compute `value` before `first`, on which they do not depend."""
    op = value.owner
    if isinstance(op, Operation) and first.is_before_in_block(op):
        for operand in op.operands:
            _move_before(first, operand)
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(first))


def _copy_shardings(statistics: Statistics, fold: FoldOp) -> None:
    """Copy the shardings of all ops of `statistics` to the ops that replace them."""
    new: Operation | None = fold
    while new is not statistics.ops[0] and new is not None:
        for old in statistics.ops:
            shard_op(new, sharding_of_op(old))
        new = new.next_op
