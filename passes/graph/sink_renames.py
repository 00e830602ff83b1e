"""
`sink-renames`: elementary or SPMD level -> same level, renames as late as possible.

A rename of a computed value ends a kernel, because the value must be in memory before
it is viewed under other names. Instead, the ops after it can compute under the old
names, and their results are renamed. So the products of one norm with the weights of
queries, keys and values can share a kernel, although queries and keys are two
dimensions of the scores. Renames of arguments, and of slices of values in memory, cost
nothing, and stay. A collective sends the value under its old names, and the received
value is renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.ops import SendOp
from comet.dialects.compound import (
    CastOp,
    ConcatOp,
    ContractOp,
    FillOp,
    GatherOp,
    MapOp,
    ReduceOp,
    RenameOp,
    SliceOp,
)
from comet.dialects.compound.dims import (
    iteration_dims,
    names_of,
    with_names,
)
from comet.dialects.compound.rename import viewed
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.sharding.boundary import says_sharding

COMPUTING = (MapOp, CastOp, ReduceOp, ContractOp)
"""Ops that mean the same under any names of their dimensions, as collectives do."""
IN_MEMORY = (FillOp, SliceOp, ConcatOp, GatherOp)
"""Constants, and ops that read memory: renames of their results end no kernel."""
DIMENSIONS = ("dim", "split", "concat")
"""The properties of collectives that are names of dimensions."""

Names: TypeAlias = Mapping[str, str]
"""New names of dimensions, by old ones."""


@dataclass(frozen=True)
class SinkRenamesPass(FunctionPass):
    """
    Compute under the names that values have, and rename the results.

    Before: `map`, `cast`, `reduce` or `contract` of a renamed computed value, or a
    collective of any renamed one. After: the same op on the value itself, and a rename
    of its result. An op stays if another of its dimensions has the old name, as in
    scores of queries and keys of one sequence, and if its result is returned, or a
    collective returns it. Functions with shardings stay, since these name dimensions.
    """

    name = "sink-renames"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if not says_sharding(function):
            PatternRewriteWalker(_SinkRename()).rewrite_region(function.body)


def names_below(op: Operation) -> Names | None:
    """
    Return the old names under which `op` can compute, by the new ones.

    None if no operand is a rename that ends a kernel, if another operand has a new name
    without such a rename, if an old name is that of another dimension of `op`, or if
    the result is returned: kernels store results under their own names.
    """
    if not isinstance(op, (*COMPUTING, CollectiveOp)) or isinstance(op, SendOp):
        return None
    renames = [rename for value in op.operands if (rename := _rename_of(value, op))]
    if not renames or _is_returned(op):
        return None
    old = _old_names(renames[0])
    for value in op.operands:
        rename, touched = _rename_of(value, op), old.keys() & set(names_of(value))
        renamed = {} if rename is None else _old_names(rename)
        if touched and renamed != {name: old[name] for name in touched}:
            return None
    conflicts = set(iteration_dims(op)) & set(old.values())
    return None if conflicts else old


def _is_returned(op: Operation) -> bool:
    """Whether the result is returned, as it is or by a collective."""
    users = [use.operation for result in op.results for use in result.uses]
    return any(
        user.has_trait(IsTerminator)
        or (isinstance(user, CollectiveOp) and _is_returned(user))
        for user in users
    )


def _rename_of(value: SSAValue, reader: Operation) -> RenameOp | None:
    """Return the rename that defines `value`, if a kernel must end before `reader`."""
    op = value.owner
    if not isinstance(op, RenameOp) or op.reshapes or not _old_names(op):
        return None
    base = viewed(op.input)
    in_memory = isinstance(base, BlockArgument) or isinstance(base.owner, IN_MEMORY)
    return op if isinstance(reader, CollectiveOp) or not in_memory else None


def _old_names(rename: RenameOp) -> dict[str, str]:
    """Return the old name of each dimension that a rename changes."""
    return {new: old for old, new in rename.renaming.items() if new != old}


class _SinkRename(RewritePattern):
    """Moves renames of operands after an op."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if (names := names_below(op)) is None:
            return
        (result,) = op.results
        sunk = op.clone()
        sunk.operands = [_before(value, op, names) for value in op.operands]
        if isinstance(sunk, CollectiveOp):
            _rename_dimensions(sunk, names)
        type_ = with_names(result.type, names)
        Rewriter.replace_value_with_new_type(sunk.results[0], type_)
        renames = dict.fromkeys(_rename_of(value, op) for value in op.operands)
        rewriter.replace(op, (sunk, RenameOp(sunk.results[0], result.type)))
        for rename in renames:
            if rename is not None and not rename.result.uses:
                rewriter.erase(rename)


def _before(value: SSAValue, reader: Operation, names: Names) -> SSAValue:
    """Return an operand without its rename if that changes one of the names."""
    rename, touched = _rename_of(value, reader), names.keys() & set(names_of(value))
    return rename.input if rename is not None and touched else value


def _rename_dimensions(op: CollectiveOp, names: Names) -> None:
    """Let a collective gather, scatter or exchange along the renamed dimensions."""
    for key in DIMENSIONS:
        dim = op.properties.get(key)
        if isinstance(dim, StringAttr):
            op.properties[key] = StringAttr(names.get(dim.data, dim.data))
