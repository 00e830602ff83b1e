"""`ag_gemm`: a b; the all-gather of a follows from how a is sharded."""

from comet.passes.graph.decompose.rules.gemm import decompose

__all__ = ["decompose"]
