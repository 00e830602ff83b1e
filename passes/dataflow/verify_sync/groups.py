"""
The rules of `verify-sync` for programs of one GPU that exchange.

They share the memory of a receive buffer. Each program stores a tile, signals and waits
at one place, so that all that wait have signalled: a group whose programs run at the
same time ends. Groups are launched in order, and each needs only itself: the kernel
ends if as many programs as a group has run at the same time. A tile has a place of its
own, which the next launch, that begins when this one has ended, uses again.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.ir import Operation

from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.dataflow import FlagsOp, KernelOp
from comet.dialects.dataflow.channel import block_extent
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.dataflow.verify_sync.wiring import Producer, Wiring, kernel_of


def group_of(op: Operation) -> SpatialOp | None:
    """Return the node of the group that runs an op, None if none does."""
    found = (node for node in _around(op) if isinstance(node, SpatialOp))
    return next((node for node in found if node.on_mesh), None)


def _around(op: Operation) -> Iterator[NodeOp]:
    """Yield the nodes around an op, innermost first."""
    above = op.parent_op()
    while isinstance(above, NodeOp):
        yield above
        above = above.parent_op()


def group_acts_together(wiring: Wiring) -> str | None:
    """Programs of a group store, signal and wait at one place, equally often."""
    if not wiring.receive_buffer.in_one_memory:
        return None
    blocks = {op.parent for op in wiring.uses}
    for op in wiring.uses if len(blocks) > 1 else ():
        return (
            f"{kernel_of(op)} stores to {wiring.name}, signals and waits in different "
            "nodes, so that programs may wait for others that do not come to signal; "
            "do all in one body"
        )
    return None


def tiles_have_places(wiring: Wiring) -> str | None:
    """Each tile that a group stores has a place, and a flag, of its own."""
    if not wiring.receive_buffer.in_one_memory:
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
    group = group_of(producer)
    assert group is not None
    for dim in _rows(producer):
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
    whole = extents_of(producer.channel_type.message)
    for dim, factor in blocks.items():
        block = block_extent(whole[dim], factor)
        tile = extents_of(producer.value)[dim]
        if tile != block:
            return (
                f"{kernel_of(producer)} makes tiles of {tile} along {dim} where the "
                f"flags of {wiring.name} count blocks of {block}; make them equal"
            )
    for dim in _rows(producer):
        if dim not in blocks:
            return (
                f"{kernel_of(producer)} signals tiles of several groups along {dim} by "
                f"one flag of {wiring.name}: each group would wait for the others; cut "
                f"blocks along {dim}"
            )
    return None


def _rows(op: Operation) -> list[str]:
    """Return the dimensions of which groups, or turns of one, have other parts."""
    group = group_of(op)
    return [
        dim
        for node in _around(op)
        if node is not group
        for dim, factor in node.factors.items()
        if factor > 1
    ]


def coresidency(kernel: KernelOp) -> str | None:
    """A kernel whose programs exchange says how many have to run at the same time."""
    sizes = [
        _programs(node)
        for node in kernel.walk()
        if isinstance(node, SpatialOp) and node.on_mesh
    ]
    needed = max(sizes, default=0)
    given = 0 if kernel.coresident is None else kernel.coresident.value.data
    if given == needed:
        return None
    name = kernel.sym_name.data
    if not needed:
        return (
            f"@{name} says that {given} programs wait for each other, and none do; "
            "leave out coresident"
        )
    return (
        f"@{name} has {needed} programs that wait for each other, and says that "
        f"{given} have to run at the same time: a launch with fewer than {needed} would"
        f" wait for ever; write coresident {needed}"
    )


def _programs(node: SpatialOp) -> int:
    """Return the number of programs of a group."""
    return prod(loop.factor for loop in node.loops)
