"""
The rules of `verify-sync` for programs of one GPU that exchange.

The programs of a group share a receive buffer. Each program stores a tile, signals and
waits at one place, so that a waiting program has signalled. So a group ends if all its
programs run at the same time. Groups are launched in order, and none needs another one:
the kernel ends if as many programs run at the same time as a group has. Each tile has a
place of its own in the buffer; the next launch, which begins after this one has ended,
uses it again.

Groups on several ranks may exchange, too. All programs of a group then have the same
value, which its root stores and signals. A group waits only for the group of the same
number on each other rank. All ranks launch their groups in this order. So the first
group that has not ended on every rank runs on all of them, or is the next to run, and
it ends, too, if each rank runs as many programs at the same time as a group has.
"""

from __future__ import annotations

from xdsl.ir import Operation

from comet.dialects.compound.dims import ceil_div, extents_of, names_of
from comet.dialects.dataflow import FlagsOp, KernelOp, PushOp, SignalOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import group_around, nodes_around
from comet.passes.dataflow.verify_sync.wiring import Producer, Wiring, kernel_of


def group_acts_together(wiring: Wiring) -> str | None:
    """Programs of a group store, signal and wait at one place, equally often."""
    if not wiring.in_group:
        return None
    blocks = {op.parent for op in wiring.uses}
    for op in wiring.uses if len(blocks) > 1 else ():
        return (
            f"{kernel_of(op)} stores to {wiring.name}, signals and waits in different "
            "nodes, so that programs may wait for others that do not come to signal; "
            "do all in one body"
        )
    return None


def root_acts_for_all(wiring: Wiring) -> str | None:
    """
    Only the root of a group stores and signals what the group sends to other ranks.
    """
    among_ranks = wiring.in_group and not wiring.receive_buffer.in_one_memory
    for op in (*wiring.producers, *wiring.signals):
        root = isinstance(op, PushOp | SignalOp) and op.root is not None
        if root is among_ranks:
            continue
        if root:
            return (
                f"{kernel_of(op)} lets the root of a group alone do its {op.name} on "
                f"{wiring.name}, for which every program of the group waits; leave out "
                "root"
            )
        return (
            f"every program of a group does the {op.name} of {kernel_of(op)} on "
            f"{wiring.name}, where other ranks have one place and one signal for all; "
            "write root"
        )
    return None


def tiles_have_places(wiring: Wiring) -> str | None:
    """No two tiles that a group stores have the same address, or the same flag."""
    if not wiring.in_group:
        return None
    for producer in wiring.producers:
        if (reason := _shared_place(wiring, producer)) is not None:
            return reason
        for flags in wiring.flags:
            if (reason := _shared_flag(wiring, producer, flags)) is not None:
                return reason
    return None


def _shared_place(wiring: Wiring, producer: Producer) -> str | None:
    """Say which loop stores several tiles to one place, None if none does."""
    group = group_around(producer)
    assert group is not None
    for dim in _looped_dims(producer):
        if dim in names_of(producer.value) and dim not in group.factors:
            continue
        return (
            f"{kernel_of(producer)} stores tiles to {wiring.name} in a loop over "
            f"{dim}, which has no place there: what others still read is "
            "overwritten; store what has the dimensions of all loops"
        )
    return None


def _shared_flag(wiring: Wiring, producer: Producer, flags: FlagsOp) -> str | None:
    """Say which tiles share a flag, None if each has one."""
    blocks = {loop.dim: loop.factor for loop in flags.type.blocks}
    message = extents_of(producer.channel_type.message)
    for dim, factor in blocks.items():
        block = ceil_div(message[dim], factor)
        tile = extents_of(producer.value)[dim]
        if tile != block:
            return (
                f"{kernel_of(producer)} makes tiles of {tile} along {dim} where the "
                f"flags of {wiring.name} count blocks of {block}; make them equal"
            )
    for dim in _looped_dims(producer):
        if dim not in blocks:
            return (
                f"{kernel_of(producer)} signals tiles of several groups along {dim} by "
                f"one flag of {wiring.name}: each group would wait for the others; cut "
                f"blocks along {dim}"
            )
    return None


def _looped_dims(op: Operation) -> list[str]:
    """Return the dimensions that the grid, and loops around a group, cut into tiles."""
    group = group_around(op)
    return [
        dim
        for node in nodes_around(op)
        if node is not group
        for dim, factor in node.factors.items()
        if factor > 1
    ]


def coresidency(kernel: KernelOp) -> str | None:
    """A kernel whose programs exchange says how many have to run at the same time."""
    sizes = [
        node.trip_count
        for node in kernel.walk()
        if isinstance(node, SpatialOp) and node.on_mesh
    ]
    needed = max(sizes, default=0)
    stated = 0 if kernel.coresident is None else kernel.coresident.value.data
    if stated == needed:
        return None
    name = kernel.sym_name.data
    if not needed:
        return (
            f"@{name} says that {stated} programs wait for each other, and none do; "
            "leave out coresident"
        )
    return (
        f"@{name} has {needed} programs that wait for each other, and says that "
        f"{stated} have to run at the same time: a launch with fewer than {needed} "
        f"would wait for ever; write coresident {needed}"
    )
