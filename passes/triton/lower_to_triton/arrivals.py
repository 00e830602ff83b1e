"""How `lower-to-triton` writes the arrival of programs at counters."""

from __future__ import annotations

from xdsl.ir import Block
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.dataflow.arrival import ArriveOp
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.dataflow.merging import arriving_node, merging_node
from comet.dialects.errors import OpError
from comet.passes.triton.lower_to_triton.channels import grid_index
from comet.passes.triton.lower_to_triton.values import Scope


def check_arrival(arrive: ArriveOp) -> None:
    """
    Raise an error for an arrival that the shim's `arrive_last` cannot do.

    One node must compute the results, and one node must read them.
    """
    if arriving_node(arrive) is None or merging_node(arrive) is None:
        raise OpError(
            arrive,
            "lower-to-triton: programs arrive with results that not one node makes, or "
            "not one node reads; give each arrival one of both",
        )
    kinds = (arrive.semantics.data, arrive.scope.data)
    if kinds != (Semantics.ACQ_REL, FlagScope.GPU) or arrive.fence is None:
        raise PassFailedException(
            "lower-to-triton: dataflow.arrive is acq_rel of gpu scope after a fence; "
            "verify-sync says what else would break"
        )


def lower_arrival(arrive: ArriveOp, scope: Scope) -> Block:
    """Write the arrival of a program; return the block that the last one runs."""
    places = {loop.dim: loop for loop in scope.grid}
    loops = [places[dim] for dim, n in arrive.type.factors.items() if n > 1]
    counter = scope.memory.counters(arrive.counters)
    if loops:
        counter = scope.insert(tl.AddPtrOp(counter, grid_index(scope, loops)))
    if arrive.count is not None:
        arrivals = scope.numbers[arrive.count]
    else:
        arrivals = scope.integer(arrive.arrivals.value.data)
    last = scope.insert(tl.ArriveLastOp(counter, arrivals), "last")
    branch = tl.IfOp(last)
    scope.builder.insert(branch)
    return branch.then.block
