"""Runs a program of one rank on the scheduler, which detects races in its kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comet.runtime import scheduler
from comet.runtime.interpreted import launched_by

if TYPE_CHECKING:
    import torch

    from comet.runtime.program import Program
    from comet.runtime.ranks import Rank


def scheduled(program: Program, seed: int, resident: int | None) -> Program:
    """
    Return the program with a launch that interleaves the kernel's programs by seed.

    At most `resident` programs run at the same time, all if it is None. The launch
    raises `RaceError` or `ProgramError` if a kernel is wrong.
    """

    def launch(*inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        def host(rank: Rank) -> torch.Tensor | tuple[torch.Tensor, ...]:
            with launched_by(rank.launch):
                return program.launch(*inputs)

        (results,) = scheduler.run(host, 1, seed=seed, resident=resident)
        return results

    return replace(program, launch=launch)
