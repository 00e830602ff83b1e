"""What emitted modules need to run: no part of the compiler is imported from here."""

from comet.runtime.command import main
from comet.runtime.program import Program, RankProgram, Tensor, expect_tensor

__all__ = ["Program", "RankProgram", "Tensor", "expect_tensor", "main"]
