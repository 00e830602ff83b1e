"""
The rules of `verify-sync` for programs that arrive at counters.

All programs of the first node store, then arrive at a counter; the last one to arrive
runs the second node for the block of the counter. It reads only stores of the programs
that arrived there, if both nodes cut the block in the same way and the counter counts
all these programs. No program waits, so that the launch ends with any number of
programs that run at the same time. If programs share a list of tiles, a block has as
many parts as the list says, and only these are stored and merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import SSAValue

from comet.dialects.compound.dims import joined_extents, names_of
from comet.dialects.dataflow import ArriveOp, CountersOp, KernelOp, program_value
from comet.dialects.dataflow.flags import Semantics
from comet.dialects.dataflow.merging import (
    arrivals_in,
    arriving_node,
    is_renamed,
    merging_node,
    readers,
)
from comet.dialects.dataflow.shares import shares_of
from comet.dialects.errors import called
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.masked_loops import copied_value


def arrival(kernel: KernelOp) -> str | None:
    """
    Return why a program might merge partial results before they are stored, or None.
    """
    for arrive in arrivals_in(kernel):
        for rule in (_order, _counter, _nodes, _count, _shares, _runs, _tiles, _parts):
            if (reason := rule(arrive, kernel.sym_name.data)) is not None:
                return reason
    return None


def _order(arrive: ArriveOp, name: str) -> str | None:
    """Stores come before the addition, and loads after it, for all threads."""
    if arrive.semantics.data is not Semantics.ACQ_REL:
        return (
            f"@{name} arrives at a counter with an addition that is "
            f"{arrive.semantics.data}: the last program may load what it does not see "
            "yet; write acq_rel"
        )
    if arrive.fence is None:
        return (
            f"@{name} arrives at a counter without a fence: only one thread's stores "
            "would come before the addition; write fence"
        )
    return None


def _counter(arrive: ArriveOp, name: str) -> str | None:
    """Counters belong to the program, and only these programs add to them."""
    counters = program_value(arrive.counters)
    if not isinstance(counters.owner, CountersOp):
        return (
            f"@{name} arrives at counters that are not of its program: nobody knows "
            "that they are 0 before a launch; make them there with dataflow.counters"
        )
    if counters.has_more_than_one_use() or arrive.counters.has_more_than_one_use():
        return (
            f"@{name} arrives at counters to which others add, too: the last program "
            "would be another one; give each arrival its own"
        )
    return None


def _nodes(arrive: ArriveOp, name: str) -> str | None:
    """One node's programs arrive, and the last one runs one other node."""
    node = arriving_node(arrive)
    if node is None:
        return (
            f"@{name} arrives with what is not all made by one node of it: programs "
            "may arrive before it is stored; list results of one node on the grid"
        )
    if merging_node(arrive) is None:
        return (
            f"the last program of @{name} to arrive runs the node that reads the "
            "results, and there is not one such node on the grid; let one read them"
        )
    return None


def _count(arrive: ArriveOp, name: str) -> str | None:
    """A counter counts all programs of its block."""
    node, blocks = arriving_node(arrive), arrive.type.factors
    assert node is not None
    for dim, factor in blocks.items():
        if [loop.factor for loop in node.loops if loop.dim == dim] != [factor]:
            return (
                f"@{name} has counters for {factor} blocks of {dim}, into which its "
                "programs do not cut it; cut both alike"
            )
    programs = prod(loop.factor for loop in node.loops if loop.dim not in blocks)
    stated = arrive.arrivals.value.data
    if stated != programs:
        return (
            f"{programs} programs of @{name} arrive at each counter, and {stated} are "
            f"said to; write arrivals {programs}"
        )
    return None


def _shares(arrive: ArriveOp, name: str) -> str | None:
    """As many programs arrive as have tiles of a block, and those parts are merged."""
    node, merge = arriving_node(arrive), merging_node(arrive)
    assert node is not None
    assert merge is not None
    shares = shares_of(node)
    if (shares and shares.count) != arrive.count:
        return (
            f"@{name} counts other parts of a sequence than its programs share: the "
            "last program to arrive would be another one; count those of its "
            "dataflow.shares"
        )
    if shares is None:
        return None
    if set(_ends_in(node)) != {(shares.first, shares.end)}:
        return (
            f"@{name} has parts that its programs do not fold from their first tile to "
            "their end: positions would be lost, or counted twice; let the loop run "
            "these"
        )
    if set(_ends_in(merge)) != {(None, shares.count)}:
        return (
            f"the last program of @{name} to arrive reads parts that nobody stored; "
            "end its loop over them at their number"
        )
    return None


def _runs(arrive: ArriveOp, name: str) -> str | None:
    """There is a program for each run of each list, and parts for all of its tiles."""
    node = arriving_node(arrive)
    assert node is not None
    if (shares := shares_of(node)) is None:
        return None
    if node.factors.get(shares.part) != shares.parts:
        return (
            f"@{name} shares sequences in {shares.parts} parts, into which it does not "
            f"cut {shares.part}; cut both alike"
        )
    lists = prod(n for dim, n in node.factors.items() if dim not in shares.lists)
    launched = 0 if node.launch is None else node.launch.persistent
    if launched != shares.run_count * lists:
        return (
            f"@{name} has {shares.run_count} runs for each of {lists} lists, and "
            f"launches {launched} programs: tiles would be left out, or done twice; "
            f"write persistent = {shares.run_count * lists}"
        )
    return None


def _ends_in(node: SpatialOp) -> Iterator[tuple[SSAValue | None, SSAValue | None]]:
    """Yield where the outermost loops of a node begin and end, as values."""
    for op in node.body.block.ops:
        if isinstance(op, TemporalOp):
            yield _read_by(op, op.first), _read_by(op, op.end)


def _read_by(node: TemporalOp, operand: IntegerAttr[I64] | None) -> SSAValue | None:
    """Return the value of a kernel that an operand of a loop has a tile of."""
    return None if operand is None else copied_value(node.ins[operand.value.data])


def _tiles(arrive: ArriveOp, name: str) -> str | None:
    """The last program merges the tiles of its block, and no others."""
    node, merge = arriving_node(arrive), merging_node(arrive)
    assert node is not None
    assert merge is not None
    blocks = {dim: factor for dim, factor in arrive.type.factors.items() if factor > 1}
    cut = {dim: factor for dim, factor in merge.factors.items() if factor > 1}
    tiles = [joined_extents((*op.tiles, *op.yielded)) for op in (node, merge)]
    if blocks != cut or any(tiles[0].get(d) != tiles[1].get(d) for d in blocks):
        return (
            f"@{name} merges other tiles than its counters have blocks: the last "
            "program at one would need what programs at another store; cut both alike"
        )
    return None


def _parts(arrive: ArriveOp, name: str) -> str | None:
    """Each partial result has the cut dimensions, which its reader calls the same."""
    blocks = [dim for dim, factor in arrive.type.factors.items() if factor > 1]
    for partial, value in zip(arrive.partials, arrive.complete, strict=True):
        for read, _ in readers(value):
            names = list(zip(names_of(partial), names_of(read), strict=False))
            if not is_renamed(read, value) or any((d, d) not in names for d in blocks):
                return (
                    f"the last program of @{name} to arrive reads "
                    f"{called(value)} in other slices than programs store "
                    "it; read it with the same dimensions"
                )
    return None
