"""
What emitted modules need to run: no part of the compiler is imported from here.

To read in this order:

* `program`: how an emitted module describes itself; `language` and `shim`: what its
  kernels call; `heap` and `flags`: symmetric memory, as the host sees it;
* `one_rank` and `ranks`: what a host program may do;
* `rank_backends`: the ways to run several ranks. On the CPU these are `scheduler` (one
  process, an `engine` of `cooperative` threads), `processes`, and
  `virtual_interpreted`, with `engine_rank` and `coresidency` in common; on GPUs `gpu`,
  by `virtual`, and `distributed`, by `peer_memory`;
* `interpreted`: kernels in Triton's interpreter, with `polling` of flags and `replay`
  of calls; `memory`, `races` and `deadlock`: what they did wrong; `progress`;
* `command`, `request`, `child`: `comet-run`. It runs `check` or `check_ranks`, and
  `bench`; or `compile_check` with `compile_report`, from the `assembly` of kernels and
  its `control_flow`, and the `store_targets` of Triton's IR.
"""

from comet.runtime.command import main
from comet.runtime.program import Program, RankProgram, Tensor, expect_tensor

__all__ = ["Program", "RankProgram", "Tensor", "expect_tensor", "main"]
