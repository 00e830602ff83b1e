"""Fusion on accelerators: nests of clusters, cores and ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.transforms.dead_code_elimination import region_dce

from comet.dialects.arch import SystemOp
from comet.dialects.errors import OpError
from comet.passes.schedule.fuse.accelerator.auto import fuse_cheapest, open_strategies
from comet.passes.schedule.fuse.accelerator.plan import fuse_function
from comet.passes.schedule.fuse.machine import FuseOptions, Machine, check_unused


@dataclass(frozen=True)
class Accelerator(Machine):
    """A chain of memories: root, clusters, and cores with their own buffers."""

    system: SystemOp

    def simplify(self, func: FuncOp) -> None:
        region_dce(func.body)

    def computes_in_place(self, op: Operation) -> bool:
        return False

    def fuse(self, func: FuncOp, options: FuseOptions) -> None:
        if options.strategy == "priority":
            raise OpError(
                func,
                "fuse: strategy=priority is for GPUs; use auto, the cheapest of full, "
                "partial, isolate_contractions and none, on accelerators",
            )
        check_unused(func, options, ("between", "kernels", "narrow"), "GPUs")
        first, *others = open_strategies(
            func, options.strategy, options.chunks, options.loops
        )
        if others:
            fuse_cheapest(func, self.system, (first, *others), options.goal)
        else:
            fuse_function(func, self.system, first)
