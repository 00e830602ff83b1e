"""
The reference interpreter: the meaning of every level of IR, in float64.

Nothing imports it at start-up, as it needs numpy.
"""

from comet.interpreter import (
    collective,
    compound,
    dataflow,
    schedule,
)
from comet.interpreter.chunking import FoldTree, Merge, Steps
from comet.interpreter.machine import Interpreter, evaluate, run
from comet.interpreter.tensor import Tensor

DIALECTS = (collective, compound, dataflow, schedule)
"""The files that register what the ops of each dialect compute."""

__all__ = ["FoldTree", "Interpreter", "Merge", "Steps", "Tensor", "evaluate", "run"]
