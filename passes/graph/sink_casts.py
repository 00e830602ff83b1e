"""
`sink-casts`: elementary level -> elementary level, with casts after views.

On an accelerator most casts are part of another op: a unit casts the values that it
reads, and memory has the value before the cast. The views between the mappings of a
chain view values in memory, so a view of such a cast becomes a cast of a view.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter

from comet.dialects.compound import CastOp, ConcatOp, RenameOp, SliceOp
from comet.dialects.compound.copied import reads_through
from comet.dialects.compound.dims import element_type_of, with_element_type
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class SinkCastsPass(FunctionPass):
    """
    Show values before casts, and cast what is shown.

    Before: a rename, slice or concat of casts that no op stores, all of one element
    type. After: the same view of the values before the casts, and a cast of it.
    """

    name = "sink-casts"

    LEVELS = (IRLevel.ELEMENTARY,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        PatternRewriteWalker(_SinkCast()).rewrite_region(function.body)


def shows_casts(module: ModuleOp) -> bool:
    """Return whether `sink-casts` would change a module."""
    functions = compute_functions(module)
    return any(sources_below(op) for function in functions for op in function.walk())


def sources_below(op: Operation) -> tuple[SSAValue, ...]:
    """
    Return the values before the casts that a view shows.

    Empty if `op` is no view, if a value that it shows is no cast, or one that an op
    stores, and if the values before them have several element types.
    """
    if not isinstance(op, RenameOp | SliceOp | ConcatOp):
        return ()
    casts = [value.owner for value in op.operands if isinstance(value.owner, CastOp)]
    sources = tuple(cast.input for cast in casts if reads_through(cast) is not None)
    one_type = len(set(map(element_type_of, sources))) == 1
    return sources if one_type and len(sources) == len(op.operands) else ()


class _SinkCast(RewritePattern):
    """Moves the casts of a view's operands after the view."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not (sources := sources_below(op)):
            return
        casts = dict.fromkeys(value.owner for value in op.operands)
        (result,) = op.results
        view = op.clone()
        view.operands = sources
        type_ = with_element_type(result.type, element_type_of(sources[0]))
        before = Rewriter.replace_value_with_new_type(view.results[0], type_)
        rewriter.replace(op, (view, CastOp(before, result.type)))
        for cast in casts:
            if isinstance(cast, CastOp) and not cast.result.uses:
                rewriter.erase(cast)
