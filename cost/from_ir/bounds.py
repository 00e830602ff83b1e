"""What the mappings of a sharded program cost at least, before it is fused."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from comet.cost.accelerator.bounds import crossing_bound
from comet.cost.estimate import ModelName
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import SystemOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound.dims import bytes_of
from comet.dialects.cost import estimate_of


def program_bound(
    func: FuncOp, system: SystemOp, model: ModelName
) -> tuple[float, float]:
    """
    Return the least latency (cycles) and energy (pJ) of the mappings of `func`.

    What it reads and returns crosses the port of the root memory, and the longest
    placed collective runs as a whole: loops around it only cut what it moves. `func`
    has no dead code.
    """
    end = func.body.block.last_op
    read = sum(bytes_of(value) for value in func.body.block.args if _is_read(value))
    written = sum(map(bytes_of, set(() if end is None else end.operands)))
    latency, energy = crossing_bound(read, written, hardware_of(system), model)
    if model == "tool":
        return latency, energy
    placed = (estimate_of(op) for op in func.walk() if isinstance(op, CollectiveOp))
    times = (figures.latency for figures in placed if figures is not None)
    return max((latency, *times)), energy


def _is_read(argument: SSAValue) -> bool:
    """Whether an op reads `argument`, in the region of instances if there is one."""
    return any(
        not isinstance(use.operation, SpmdOp)
        or use.operation.body.block.args[use.index].uses
        for use in argument.uses
    )
