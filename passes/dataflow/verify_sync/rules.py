"""
The rules of `verify-sync`: each says why an inbox is used wrongly, or None.

Together they prove by induction over the launches of a program that it is right. A rank
that waits for a block has been told of it by all programs that made it, each after its
stores (release, fence, acquire, scope). What it is told of comes from kernels that all
ranks launch before the one that waits, so that the earliest kernel that waits gets on.
A rank that gives for launch e + 2 has heard from every rank in launch e + 1, which that
rank entered only when it had read all of launch e: the slot is free. To the inbox of an
input the caller gives, before a launch and after the last one has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow import (
    EpochOp,
    FlagsOp,
    KernelOp,
    SignalOp,
    WaitOp,
    behind,
)
from comet.dialects.dataflow.channel import block_extent
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.dataflow.rank_loops import destination_dims, loops_over, tile_of
from comet.dialects.dataflow.signals import can_cover, covers
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow.lower_channels import destinations
from comet.passes.dataflow.verify_sync.wiring import (
    Giver,
    Reader,
    Wiring,
    kernel_of,
    shown,
)

Rule = Callable[[Wiring], str | None]


def all_ranks_talk(wiring: Wiring) -> str | None:
    """An inbox joins all ranks that launch the program."""
    inbox = wiring.inbox
    program = inbox.parent_op()
    region = None if program is None else program.parent_op()
    name = region.mesh if isinstance(region, SpmdOp) else inbox.mesh
    mesh = lookup_mesh(inbox, name.string_value())
    world = mesh.size(mesh.axis_extents)
    if inbox.mesh == name and inbox.ranks == world:
        return None
    return (
        f"{wiring.name} joins {inbox.ranks} ranks of @{inbox.mesh.string_value()}, and "
        f"the program runs on all {world} of @{name.string_value()}; let it be along "
        f"all axes of that: {', '.join(mesh.axis_extents)}"
    )


def one_gives(wiring: Wiring) -> str | None:
    """Exactly one kernel gives to an inbox in a launch, or the caller."""
    if wiring.of_input:
        if not wiring.givers:
            return None
        return (
            f"{kernel_of(wiring.givers[0])} gives to {wiring.name}, where the caller "
            "has written an input that is still read; use an inbox for each"
        )
    if not wiring.givers and (wiring.readers or wiring.waits):
        return f"{wiring.name} is read and nobody gives to it; push or stage a value"
    if len(wiring.givers) > 1:
        first, second = wiring.givers[:2]
        return (
            f"{kernel_of(second)} gives to {wiring.name} in the launch in which "
            f"{kernel_of(first)} has done so, and overwrites what is still read; use "
            "an inbox for each"
        )
    return None


def epochs_are_shared(wiring: Wiring) -> str | None:
    """All uses in one kernel take the slot and the flags of the launch it counts."""
    for op in wiring.uses:
        if op.epoch is None or not isinstance(op.epoch.owner, EpochOp):
            return (
                f"{kernel_of(op)} uses {wiring.name} without an epoch of its own, so "
                "that launches do not take slots in turn; count with dataflow.epoch"
            )
        block = op.parent
        assert block is not None
        counters = [other for other in block.ops if isinstance(other, EpochOp)]
        if len(counters) > 1:
            return (
                f"{kernel_of(op)} counts its launches {len(counters)} times, so that "
                "its epochs run ahead of those of other kernels; use one dataflow.epoch"
            )
    return None


def covered_is_stored(wiring: Wiring) -> str | None:
    """A signal speaks only for what the same programs have stored before it."""
    box = wiring.inbox.result
    for op in wiring.signals:
        if behind(op.channel) is box or not covers(op, box) or can_cover(op, box):
            continue
        return (
            f"{kernel_of(op)} speaks for {wiring.name} by the signal of "
            f"{shown(behind(op.channel))}, before which its programs have not stored "
            "there as well; give it a signal and flags of its own"
        )
    return None


def flags_are_own(wiring: Wiring) -> str | None:
    """Signals and waits use flags of the inbox that they are about."""
    for op in (*wiring.signals, *wiring.waits):
        assert op.flags is not None
        flags = behind(op.flags)
        if flags.owner in wiring.flags:
            continue
        owner = flags.owner
        whose = shown(owner.box) if isinstance(owner, FlagsOp) else "another program"
        return (
            f"{kernel_of(op)} uses {shown(flags)}, the flags of {whose}, for "
            f"{wiring.name}; give each inbox its own flags"
        )
    return None


def _flags(op: SignalOp | WaitOp) -> FlagsOp:
    """Return the flags of an operation, which are its inbox's own."""
    assert op.flags is not None
    flags = behind(op.flags).owner
    assert isinstance(flags, FlagsOp)
    return flags


def reads_are_behind(wiring: Wiring) -> str | None:
    """What is read has arrived: a wait, or a barrier of all ranks, stands before it."""
    giver = next(iter(wiring.givers), None)
    for op in wiring.readers:
        if giver is not None and wiring.barrier_between(giver, op):
            continue
        if wiring.of_input and wiring.places[op].barriers > 0:
            continue
        same = [wait for wait in wiring.waits if wait.parent is op.parent]
        if any(wiring.before(wait, op) for wait in same):
            continue
        if same:
            return (
                f"{kernel_of(op)} reads {wiring.name} before it waits; put the wait "
                "first"
            )
        return (
            f"{kernel_of(op)} reads {wiring.name} without a wait on its flags, and no "
            "barrier of all ranks stands between; add a dataflow.wait"
        )
    return None


def waits_are_told(wiring: Wiring) -> str | None:
    """Whoever waits for flags is told of them by a kernel that starts before."""
    for wait in wiring.waits:
        flags = _flags(wait)
        signals = [op for op in wiring.signals if _flags(op) is flags]
        if not signals:
            return (
                f"{kernel_of(wait)} waits for flags of {wiring.name} that nobody "
                "signals, for ever; signal where the inbox is given to"
            )
        for signal in signals:
            if wiring.before(signal, wait):
                continue
            if signal.parent is wait.parent:
                return (
                    f"{kernel_of(wait)} waits for {wiring.name} before it has given its"
                    " own share, and so do all ranks, for ever; give first"
                )
            return (
                f"{kernel_of(wait)} waits for {kernel_of(signal)}, which every rank "
                "launches only afterwards: all wait for ever; launch it before"
            )
    return None


def signals_follow_stores(wiring: Wiring) -> str | None:
    """Whoever signals has stored before, once, and all its threads have."""
    for index, signal in enumerate(wiring.signals):
        giver = next((op for op in wiring.givers if op.parent is signal.parent), None)
        if giver is None and not wiring.of_input:
            return (
                f"{kernel_of(signal)} signals {wiring.name}, to which it does not "
                "give; signal in the kernel that does"
            )
        if giver is not None and wiring.before(signal, giver):
            return (
                f"{kernel_of(signal)} signals {wiring.name} before it stores; put the "
                "signal behind"
            )
        if index:
            return (
                f"{kernel_of(signal)} signals a tile of {wiring.name} twice, so that "
                "readers take the second for another tile; signal once"
            )
        if signal.fence is None:
            return (
                f"{kernel_of(signal)} signals {wiring.name} without a fence: stores of "
                "other threads may come after the flag; add `fence`"
            )
    return None


def memory_is_ordered(wiring: Wiring) -> str | None:
    """Signals release and waits acquire, for all GPUs."""
    wanted = (
        *((op, Semantics.RELEASE, "stores") for op in wiring.signals),
        *((op, Semantics.ACQUIRE, "loads") for op in wiring.waits),
    )
    for op, semantics, what in wanted:
        assert op.semantics is not None
        assert op.scope is not None
        if op.semantics.data is not semantics:
            return (
                f"{kernel_of(op)} has a {op.name} on {wiring.name} that is "
                f"{op.semantics.data}: its {what} may move past it; make it {semantics}"
            )
        if op.scope.data is not FlagScope.SYSTEM:
            return (
                f"{kernel_of(op)} has a {op.name} on {wiring.name} of scope "
                f"{op.scope.data}, which other GPUs do not see in order; make it "
                f"{FlagScope.SYSTEM}"
            )
    return None


def tiles_fit_blocks(wiring: Wiring) -> str | None:
    """A tile belongs to one block of one message."""
    for giver in wiring.givers:
        node = giver.value.owner
        if not isinstance(node, SpatialOp):
            return (
                f"{kernel_of(giver)} gives to {wiring.name} what no node on the launch "
                "grid makes; only tiles of such a node can be counted"
            )
        if (reason := _crossed_ranks(wiring, giver, node)) is not None:
            return reason
        for flags in wiring.flags:
            if (reason := _crossed_blocks(wiring, giver, node, flags)) is not None:
                return reason
    return None


def _crossed_ranks(wiring: Wiring, giver: Giver, node: SpatialOp) -> str | None:
    """Say which tiles are not for one receiver after another, None if all are."""
    split = giver.channel_type.split
    rows = [row.factor for row in node.loops if row.dim == split]
    if split is None or not rows:
        return None
    share = extents_of(giver.channel_type.message)[split]
    shares = len(rows) > 1 or tile_of(node, split) == share
    if not (rows[0] == wiring.inbox.ranks and shares):
        return (
            f"{kernel_of(giver)} cuts {split} into {rows[0]} parts, which are not the "
            f"shares of the {wiring.inbox.ranks} receivers of {wiring.name}; let the "
            f"first row of {split} run over the ranks"
        )
    kernel = giver.parent_op()
    assert isinstance(kernel, KernelOp)
    if split not in destination_dims(kernel, node):
        return (
            f"{kernel_of(giver)} makes every tile for one receiver of {wiring.name} and"
            f" tells all of it; name {split} in its destinations"
        )
    return None


def _crossed_blocks(
    wiring: Wiring, giver: Giver, node: SpatialOp, flags: FlagsOp
) -> str | None:
    """Say which tiles lie in two blocks, None if each lies in one."""
    whole = extents_of(giver.value)
    extents = extents_of(giver.channel_type.message)
    for row in flags.type.blocks:
        dim, extent = row.dim, extents[row.dim]
        block = block_extent(extent, row.factor)
        looped = dim in node.factors
        tile = min(tile_of(node, dim), extent) if looped else extent
        part = node.last_cut(dim, whole[dim]).extent
        crossed = part < extent and part % block > 0
        if tile != block or crossed:
            anew = f", anew in every {part}," if crossed else ""
            return (
                f"{kernel_of(giver)} makes tiles of {tile} along {dim}{anew} where the "
                f"flags of {wiring.name} count blocks of {block}; make them equal"
            )
    return None


def writers_are_counted(wiring: Wiring) -> str | None:
    """Flags count the tiles of a block, and waits are for all of them."""
    for flags in wiring.flags:
        writers = flags.writers.value.data
        for giver in wiring.givers:
            made = _tiles_per_block(wiring, giver, flags)
            if writers != made:
                return (
                    f"the flags of {wiring.name} count {writers} writers, but "
                    f"{kernel_of(giver)} makes {made} tiles of each block; count these"
                )
        if wiring.of_input and writers > 1:
            return (
                f"the flags of {wiring.name} count {writers} writers of an input, of "
                "which one program tells; count one"
            )
        for wait in wiring.waits:
            arrivals = 0 if wait.arrivals is None else wait.arrivals.value.data
            if arrivals != writers:
                end = "reads what is not there" if arrivals < writers else "never ends"
                return (
                    f"{kernel_of(wait)} waits for {arrivals} of the {writers} tiles of "
                    f"a block of {wiring.name} and {end}; wait for all"
                )
    return None


def _tiles_per_block(wiring: Wiring, giver: Giver, flags: FlagsOp) -> int:
    node = giver.value.owner
    assert isinstance(node, SpatialOp)
    programs = prod(row.factor for row in node.loops)
    blocks = prod(row.factor for row in flags.type.blocks)
    return programs // (blocks * destinations(giver, wiring.inbox.ranks))


def sources_are_shares(wiring: Wiring) -> str | None:
    """Loops that visit one source after another visit all ranks, a share each."""
    ranks, type_ = wiring.inbox.ranks, wiring.inbox.type
    for reader in wiring.readers:
        named = _sources(reader)
        for node, dim in dict.fromkeys(loops_over(reader.result, type_.gather)):
            rows = [row.factor for row in node.loops if row.dim == dim]
            shares = len(rows) > 1 or tile_of(node, dim) == type_.source_share
            if dim in named and not (rows[0] == ranks and shares):
                return (
                    f"{kernel_of(reader)} visits {dim} in {rows[0]} parts, which are "
                    f"not the shares of the {ranks} ranks that {wiring.name} gathers; "
                    f"let the first row of {dim} run over the ranks, or leave {dim} "
                    "out of its sources"
                )
    return None


def _sources(reader: Reader) -> tuple[str, ...]:
    """Return the dimensions whose loops wait for one source after another."""
    kernel = reader.parent_op()
    assert isinstance(kernel, KernelOp)
    return () if kernel.sources is None else tuple(dim.data for dim in kernel.sources)


def slots_are_free(wiring: Wiring) -> str | None:
    """Nobody overwrites what another rank still reads in an earlier launch."""
    if wiring.inbox.slots.value.data > 1 or not wiring.readers:
        return None
    places = [wiring.places[giver].barriers for giver in wiring.givers]
    first = 0 if wiring.of_input else min(places)
    last = max(wiring.places[reader].barriers for reader in wiring.readers)
    if first > 0 or last < wiring.barriers:
        return None
    return (
        f"{wiring.name} has one slot: a rank that is a launch ahead overwrites what "
        "another still reads; use 2 slots, or a barrier of all ranks behind the readers"
    )


RULES: Iterable[Rule] = (
    all_ranks_talk,
    one_gives,
    epochs_are_shared,
    covered_is_stored,
    flags_are_own,
    waits_are_told,
    reads_are_behind,
    signals_follow_stores,
    memory_is_ordered,
    tiles_fit_blocks,
    writers_are_counted,
    sources_are_shares,
    slots_are_free,
)
