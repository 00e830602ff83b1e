"""
annotate-flops: write on every contraction how many operations it takes.

Level: elementary -> elementary. A file with a pass needs no package to be used:

    comet-opt samples/gemm_softmax.mlir \\
      --load-pass-plugin samples/custom_pass/annotate_flops/annotate_flops.py \\
      -p decompose,annotate-flops
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import extents_of
from comet.passes.analysis.functions import compute_functions

FLOPS = "sample.flops"
"""The attribute that the pass writes; its prefix keeps it apart from others'."""


def flops_of(op: ContractOp) -> int:
    """Count a multiplication and an addition for each point of the iteration space."""
    extents = extents_of(op.lhs) | extents_of(op.rhs)
    return 2 * prod(extents.values())


@dataclass
class AnnotateContract(RewritePattern):
    """Writes the count on contractions that take enough operations to matter."""

    minimum: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ContractOp, rewriter: PatternRewriter) -> None:
        flops = flops_of(op)
        if flops < self.minimum or FLOPS in op.attributes:
            return
        op.attributes[FLOPS] = IntegerAttr(flops, i64)
        rewriter.notify_op_modified(op)


@dataclass(frozen=True)
class AnnotateFlopsPass(ModulePass):
    """Write on every contraction how many operations it takes."""

    name = "annotate-flops"

    minimum: int = 0
    """Contractions with fewer operations are left alone."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        walker = PatternRewriteWalker(AnnotateContract(self.minimum))
        for func in compute_functions(op):
            walker.rewrite_region(func.body)
