"""
Fusion on GPUs: the rewrite of what one GPU does as kernels.

On several GPUs all run the same kernels: these stand inside the SPMD region, which
stays, with the collectives between them.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce


def simplify(func: FuncOp) -> None:
    """Drop what the first step of a fold does to its neutral element, and repeats."""
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(func.body)
    cse(func)
