"""The `triton-distributed` pipeline: named ops to Triton kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.passes.hardware_kind import require_gpu


@dataclass(frozen=True)
class TritonDistributedPass(ModulePass):
    """
    Compile named compound ops to the kernels of one GPU.

    Before: named ops, with the hardware attached. After: the `tl` dialect and a launch
    plan, ready for `-t triton`. Every part is a pass of its own.
    """

    name = "triton-distributed"

    ranks: int = 1
    """The number of GPUs."""

    stream: bool = True
    """Write reductions that need one another as one running fold."""

    strategy: Literal["none", "partial", "full", "auto"] = "auto"
    """See `fuse`."""

    between: Literal["recompute", "spill", "auto"] = "auto"
    """See `fuse`."""

    factors: str = "auto"
    """See `tile`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks != 1:
            raise PassFailedException(
                f"triton-distributed: ranks={self.ranks} is not supported, kernels are "
                "written for one GPU; use ranks=1"
            )
        require_gpu(self.name, attached_system(op))
        PassPipeline(tuple(self.parts())).apply(ctx, op)

    def parts(self) -> Iterator[ModulePass]:
        """Yield the passes of the pipeline, in order."""
        from comet.passes.annotate_cost import AnnotateCostPass
        from comet.passes.decompose import DecomposePass
        from comet.passes.fuse import FusePass
        from comet.passes.lower_to_triton import LowerToTritonPass
        from comet.passes.outline_kernels import OutlineKernelsPass
        from comet.passes.stream import StreamPass
        from comet.passes.tile import TilePass

        yield DecomposePass(accumulator="f32")
        if self.stream:
            yield StreamPass()
        yield FusePass(strategy=self.strategy, between=self.between)
        yield TilePass(factors=self.factors)
        yield OutlineKernelsPass()
        yield AnnotateCostPass()
        yield LowerToTritonPass()
