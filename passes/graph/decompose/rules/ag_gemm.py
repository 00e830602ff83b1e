"""`ag_gemm`: a b; the all-gather of a follows from the sharding of a."""

from comet.passes.graph.decompose.rules.gemm import decompose

__all__ = ["decompose"]
