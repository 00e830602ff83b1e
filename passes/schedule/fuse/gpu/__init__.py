"""
Fusion on GPUs: the kernels of one GPU.

Several GPUs run the same kernels: these are in the SPMD region, which stays, with the
collectives between them. docs/graphs.md explains the choices. To read in this order:

* `choice`: which strategy is taken, and what is tried for that; `fused`: its kernels;
* `groups`: the ops of each kernel by strategy, or those that are `given`; `cut` divides
  what does not fit, `scatters` what is added to rows;
* `plan`, `kernel_tree`: the loops of a kernel, and its tile tree;
* `trial`, `forms`: the price of a kernel; `kernel_key` finds equal ones, `simplify`
  what needs no work, `launching` prices shared launches;
* `priority` on a `kernel_graph`, with what is in `recompute`: priority fusion;
  `parallel` runs it in several processes;
* `bound`, from `op_facts` and `least_work`: lower bounds, which save trials;
* `narrow`: products stored in fewer bits; `exchanging`: groups of programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import PadOp
from comet.dialects.errors import OpError
from comet.passes.analysis.dependence import is_constant
from comet.passes.analysis.padding import is_border
from comet.passes.schedule.fuse.gpu.choice import fuse_function
from comet.passes.schedule.fuse.gpu.exchanging import exchanges_in_gpu, fuse_exchanging
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.fuse.machine import FuseOptions, Machine, check_unused


@dataclass(frozen=True)
class Gpu(Machine):
    """Device memory, and multiprocessors with shared memory and registers."""

    system: SystemOp

    def simplify(self, func: FuncOp) -> None:
        simplify(func)

    def computes_in_place(self, op: Operation) -> bool:
        return all(
            is_constant(result) and all(use.operation.results for use in result.uses)
            for result in op.results
        )

    def fuse(self, func: FuncOp, options: FuseOptions) -> None:
        if options.strategy == "isolate_contractions":
            raise OpError(
                func,
                "fuse: strategy=isolate_contractions is for accelerators; use none, "
                "which gives each product a kernel of its own, on GPUs",
            )
        check_unused(func, options, ("chunks", "loops"), "accelerators")
        for op in func.walk():
            if isinstance(op, PadOp) or is_border(op):
                raise OpError(
                    op,
                    f"fuse: @{func.sym_name.data} has '{op.name}', which GPUs read as "
                    "parts of tensors; run lower-views before fuse",
                )
        if exchanges_in_gpu(func, gpu_levels(self.system)):
            _check_no_kernels(func, options)
            fuse_exchanging(func, self.system)
        else:
            fuse_function(func, self.system, options)


def _check_no_kernels(func: FuncOp, options: FuseOptions) -> None:
    """Raise PassFailedException for options that choose what kernels store."""
    if options.kernels != "auto" or options.narrow not in ("none", "auto"):
        raise OpError(
            func,
            f"fuse: programs of @{func.sym_name.data} exchange values in one kernel, "
            "and kernels=.. and narrow=.. say what several store; leave them out, or "
            "use ctas=1",
        )
