"""The interface of the two kinds of machines that ops are fused for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.dialects.errors import OpError
from comet.passes.schedule.fuse.strategy import Between, Chunks, Loops, Name
from comet.passes.search.goal import ChoosesByGoal, ModelOption, ObjectiveOption


@dataclass(frozen=True)
class FuseOptions(ChoosesByGoal):
    """The options of `fuse`; `auto` leaves one to the search."""

    strategy: Literal[Name, "auto"] = "none"
    """
    Where intermediates go: all through the outermost level (`none`), there only before
    and after contractions (accelerators), nearer for some (`partial`), or none through
    it (`full`); kernels merged in the order of what that saves (`priority`, GPUs); or
    the cheapest of these.
    """

    chunks: Literal[Chunks, "auto"] = "shared"
    """
    On accelerators, where the loop of a fold is: over the shared buffer, or over the
    outermost level, so that chunks are loaded while others are computed on; or the
    cheaper one.
    """

    loops: Literal[Loops, "auto"] = "shared"
    """
    On accelerators, whether the ops of a nest share their loops over the shared buffer,
    or each product has loops of its own, which may cut the dimensions it sums over; or
    the cheaper one.
    """

    between: Literal[Between, "auto"] = "auto"
    """
    On GPUs, how two reduction loops over a row get a product that both need: they
    compute it twice, or spill it to device memory; or the cheaper one.
    """

    kernels: str = "auto"
    """
    On GPUs, the names of the values that each kernel stores, as in "h; q k; mixed";
    what none stores is computed where it is needed. `auto`: as the strategy says.
    """

    narrow: str = "none"
    """
    On GPUs, the names of the products that are stored in the type of their operands
    between kernels, as in "c"; `none`: in the type that they are summed in; or `auto`:
    all, where that is faster.
    """

    launches: str = "auto"
    """
    On one GPU, how kernels will be launched, as for `merge-launches`: with `none` each
    is priced with a launch of its own, else those that may share a launch with one.
    """

    specialize: bool = False
    """
    On GPUs, whether kernels will have producer warps where that is faster, as for
    `specialize-tiles`: then choices are priced with these.
    """

    model: ModelOption = "paper"

    objective: ObjectiveOption = "latency"


def check_unused(
    func: FuncOp, options: FuseOptions, names: Sequence[str], kind: str
) -> None:
    """Raise PassFailedException if options are set that only `kind` has, like GPUs."""
    default = FuseOptions()
    for name in names:
        if getattr(options, name) not in ("auto", getattr(default, name)):
            raise OpError(func, f"fuse: {name}=.. is for {kind}; leave it out")


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

    def fuse(self, func: FuncOp, options: FuseOptions) -> None:
        """
        Replace the ops of `func` by the cheapest nests that the options allow.

        Raises PassFailedException for ops that no nest of the machine can contain.
        """
        ...
