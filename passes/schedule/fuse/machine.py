"""What differs between the kinds of machines that ops are fused for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.passes.schedule.fuse.strategy import Between, Chunks, Loops, Name
from comet.passes.search.goal import Goal


@dataclass(frozen=True)
class Options:
    """The options of `fuse`, some of them open (`auto`)."""

    strategy: Name | Literal["auto"]
    chunks: Chunks | Literal["auto"]
    loops: Loops | Literal["auto"]
    between: Between | Literal["auto"]
    kernels: str
    """What each kernel of a GPU stores, or `auto`."""
    narrow: str
    """
    The names of the products that a GPU stores in the type of their operands, or `none`
    or `auto`.
    """
    launches: str
    """How kernels of a GPU will be launched, as the option of `merge-launches`."""
    goal: Goal


class Machine(Protocol):
    """
    A kind of machine.

    The `Levels` of its plans say where values are, what stays there, and what moves at
    the border of a node.
    """

    def simplify(self, func: FuncOp) -> None:
        """Remove what the machine need not compute, before the ops are checked."""
        ...

    def computes_in_place(self, op: Operation) -> bool:
        """Return whether nodes compute the constants of `op` without a loop."""
        ...

    def fuse(self, func: FuncOp, options: Options) -> None:
        """
        Replace the ops of `func` by nests, the cheapest that options leave open.

        Raises PassFailedException for ops that no nest of the machine can contain.
        """
        ...
