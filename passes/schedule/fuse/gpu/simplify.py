"""
Simplifies ops and tile trees on GPUs: patterns, dead code, common subexpressions.

Trees of kernels are built for each candidate of a search, and most have nothing to
simplify. Visits of their ops show that, which is much faster than to look for a
fixpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.traits import IsolatedFromAbove, IsTerminator
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce

from comet.dialects.compound import CastOp, FillOp, MapOp
from comet.dialects.compound.map import folded


def simplify(func: FuncOp) -> None:
    """Canonicalize, and remove dead code and common subexpressions."""
    if not is_folded(func):
        PatternRewriteWalker(
            CanonicalizationRewritePattern(), post_walk_func=region_dce
        ).rewrite_region(func.body)
    if not all(map(is_distinct, func.body.blocks)):
        cse(func)


def is_folded(func: FuncOp) -> bool:
    """Return whether each result has a use and no pattern applies to an op."""
    return not any(_is_dead(op) or _is_rewritten(op) for op in func.body.walk())


Known: TypeAlias = (
    "dict[Hashable, list[tuple[dict[str, Attribute], Sequence[Attribute]]]]"
)
"""The properties and result types of ops, by all else that is compared."""


def is_distinct(block: Block, known: Known | None = None) -> bool:
    """
    Return whether no two ops of a block are equal, or one and an op of `known`.

    These are around the block; blocks in its ops are asked, too. False also for ops
    that differ in their regions, which are not compared.
    """
    known = {} if known is None else {key: [*ops] for key, ops in known.items()}
    for op in block.ops:
        similar = known.setdefault((type(op), tuple(op.operands)), [])
        compared = op.properties, op.result_types
        if compared in similar:
            return False
        similar.append(compared)
        for inside in (each for region in op.regions for each in region.blocks):
            around = None if op.has_trait(IsolatedFromAbove) else known
            if not is_distinct(inside, around):
                return False
    return True


def _is_dead(op: Operation) -> bool:
    """Return whether nothing uses an op, which may be one that has effects."""
    used = any(result.first_use is not None for result in op.results)
    return not used and not op.has_trait(IsTerminator)


def _is_rewritten(op: Operation) -> bool:
    """Return whether a canonicalization pattern applies to an op."""
    if isinstance(op, MapOp):
        return folded(op) is not None
    return isinstance(op, CastOp) and isinstance(op.input.owner, FillOp)
