"""The interface of the two kinds of machines that ops are fused for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.passes.schedule.fuse.strategy import Between, Chunks, Loops, Name
from comet.passes.search.goal import Goal


@dataclass(frozen=True)
class Options:
    """The options of `fuse`; `auto` leaves one to the search."""

    strategy: Name | Literal["auto"]
    chunks: Chunks | Literal["auto"]
    loops: Loops | Literal["auto"]
    between: Between | Literal["auto"]
    kernels: str
    """The values that each kernel of a GPU stores, or `auto`."""
    narrow: str
    """The products that a GPU stores in their operands' type, `none`, or `auto`."""
    launches: str
    """How kernels of a GPU will be launched, as the option of `merge-launches`."""
    goal: Goal


class Machine(Protocol):
    """
    A kind of machine.

    The `Levels` of its fusion plans give the memory level of each value.
    """

    def simplify(self, func: FuncOp) -> None:
        """Remove ops that the machine need not compute, before ops are checked."""
        ...

    def computes_in_place(self, op: Operation) -> bool:
        """Return whether nodes compute the constant results of `op` without a loop."""
        ...

    def fuse(self, func: FuncOp, options: Options) -> None:
        """
        Replace the ops of `func` by the cheapest nests that the options allow.

        Raises PassFailedException for ops that no nest of the machine can contain.
        """
        ...
