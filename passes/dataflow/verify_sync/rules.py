"""
The rules of `verify-sync`: each returns an error in the use of a receive buffer, or
None.

Together they prove, by induction over the launches of a program:

* Loads see the stores. A rank waits for the signals of all programs that compute a
  block, each of which comes after the stores (release, fence, acquire, scope).
* Every wait ends. The signals come from kernels that all ranks launch before the one
  that waits, so that the earliest waiting kernel makes progress.
* No rank overwrites what another rank still reads. A rank that stores in launch e + 2
  has received a signal of every rank in launch e + 1, and each rank began that launch
  after it had read all of launch e: the slot is free.

Groups of programs wait for the group of the same number on other ranks (`groups`). The
caller writes the receive buffer of an input before a launch, after the last launch has
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.dataflow import (
    EpochOp,
    FlagsOp,
    program_value,
)
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.dataflow.rank_loops import destination_dims, loops_over, tile_of
from comet.dialects.dataflow.signals import can_cover, covers, in_node, node_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import outside
from comet.passes.dataflow.verify_sync.groups import (
    group_acts_together,
    root_acts_for_all,
    tiles_have_places,
)
from comet.passes.dataflow.verify_sync.signals import signals_of_blocks
from comet.passes.dataflow.verify_sync.wiring import (
    Consumer,
    Producer,
    Wiring,
    flags_of,
    kernel_of,
    kernel_op,
    loads_before,
    shown,
)

Rule = Callable[[Wiring], str | None]


def buffer_joins_all_ranks(wiring: Wiring) -> str | None:
    """A receive buffer joins all ranks that launch the program."""
    receive_buffer = wiring.receive_buffer
    if receive_buffer.in_one_memory:
        return None
    program = receive_buffer.parent_op()
    region = None if program is None else program.parent_op()
    name = region.mesh if isinstance(region, SpmdOp) else receive_buffer.mesh
    mesh = lookup_mesh(receive_buffer, name.string_value())
    world = mesh.size(mesh.rank_axes)
    if receive_buffer.mesh == name and receive_buffer.ranks == world:
        return None
    return (
        f"{wiring.name} joins {receive_buffer.ranks} ranks of "
        f"@{receive_buffer.mesh.string_value()}, and the program runs on all {world} "
        f"of @{name.string_value()}; let it be along all axes of that: "
        f"{', '.join(mesh.rank_axes)}"
    )


def one_producer(wiring: Wiring) -> str | None:
    """
    A receive buffer has exactly one producer in a launch: a kernel, or the caller.
    """
    if wiring.of_input:
        if not wiring.producers:
            return None
        return (
            f"{kernel_of(wiring.producers[0])} stores to {wiring.name}, where the "
            "caller has written an input that is still read; use a receive buffer for "
            "each"
        )
    if not wiring.producers and (wiring.consumers or wiring.waits):
        return f"{wiring.name} is read and has no producer; push or stage a value"
    if len(wiring.producers) > 1:
        first, second = wiring.producers[:2]
        return (
            f"{kernel_of(second)} stores to {wiring.name} in the launch in which "
            f"{kernel_of(first)} has done so, and overwrites what is still read; use a "
            "receive buffer for each"
        )
    return None


def epochs_are_shared(wiring: Wiring) -> str | None:
    """All uses in one kernel take the slot and the flags of the launch it counts."""
    for op in wiring.uses:
        if op.epoch is None or not isinstance(outside(op.epoch).owner, EpochOp):
            return (
                f"{kernel_of(op)} uses {wiring.name} without an epoch of its own, so "
                "that launches do not take slots in turn; count with dataflow.epoch"
            )
        ops = kernel_op(op).body.block.ops
        counters = [counter for counter in ops if isinstance(counter, EpochOp)]
        if len(counters) > 1:
            return (
                f"{kernel_of(op)} counts its launches {len(counters)} times, so that "
                "its epochs run ahead of those of other kernels; use one dataflow.epoch"
            )
    return None


def covered_is_stored(wiring: Wiring) -> str | None:
    """A signal covers only what the same programs have stored before it."""
    buffer = wiring.receive_buffer.result
    for op in wiring.signals:
        if (
            program_value(op.channel) is buffer
            or not covers(op, buffer)
            or can_cover(op, buffer)
        ):
            continue
        return (
            f"{kernel_of(op)} covers {wiring.name} by the signal of "
            f"{shown(program_value(op.channel))}, before which its programs have not "
            "stored there as well; give it a signal and flags of its own"
        )
    return None


def flags_belong_to_buffer(wiring: Wiring) -> str | None:
    """Signals and waits use flags of their receive buffer."""
    for op in (*wiring.signals, *wiring.waits):
        assert op.flags is not None
        flags = program_value(op.flags)
        if flags.owner in wiring.flags:
            continue
        owner = flags.owner
        whose = shown(owner.buffer) if isinstance(owner, FlagsOp) else "another program"
        return (
            f"{kernel_of(op)} uses {shown(flags)}, the flags of {whose}, for "
            f"{wiring.name}; give each receive buffer its own flags"
        )
    return None


def reads_follow_waits(wiring: Wiring) -> str | None:
    """Loads follow waits: a wait, or a barrier of all ranks, comes before each."""
    producer = next(iter(wiring.producers), None)
    for op in wiring.consumers:
        if producer is not None and wiring.barrier_between(producer, op):
            continue
        if wiring.of_input and wiring.points[op].barriers > 0:
            continue
        if not any(loads_before(op.result, lambda wait: wait.own is None)):
            continue
        if any(kernel_op(wait) is kernel_op(op) for wait in wiring.waits):
            return (
                f"{kernel_of(op)} reads {wiring.name} before it waits; put the wait "
                "first"
            )
        return (
            f"{kernel_of(op)} reads {wiring.name} without a wait on its flags, and no "
            "barrier of all ranks is in between; add a dataflow.wait"
        )
    return None


def waits_are_signalled(wiring: Wiring) -> str | None:
    """Flags with waits are signalled by a kernel that starts before."""
    for wait in wiring.waits:
        signals = [op for op in wiring.signals if flags_of(op) is flags_of(wait)]
        if not signals:
            return (
                f"{kernel_of(wait)} waits for flags of {wiring.name} that nobody "
                "signals, for ever; signal in the kernel that stores to it"
            )
        for signal in signals:
            if wiring.before(signal, wait):
                continue
            if kernel_op(signal) is kernel_op(wait):
                return (
                    f"{kernel_of(wait)} waits for {wiring.name} before it has stored "
                    "its own shard, and so do all ranks, for ever; store first"
                )
            return (
                f"{kernel_of(wait)} waits for {kernel_of(signal)}, which every rank "
                "launches only afterwards: all wait for ever; launch it before"
            )
    return None


def signals_follow_stores(wiring: Wiring) -> str | None:
    """A signal follows the stores of all threads, and comes once."""
    for index, signal in enumerate(wiring.signals):
        producer = next(
            (op for op in wiring.producers if kernel_op(op) is kernel_op(signal)), None
        )
        if producer is None and not wiring.of_input:
            return (
                f"{kernel_of(signal)} signals {wiring.name}, to which it does not "
                "store; signal in the kernel that does"
            )
        early = in_node(signal) and not covers(signal, wiring.receive_buffer.result)
        if producer is not None and (early or wiring.before(signal, producer)):
            return (
                f"{kernel_of(signal)} signals {wiring.name} before it stores; put the "
                "signal after the stores"
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
        local = wiring.receive_buffer.in_one_memory
        if op.scope.data is not FlagScope.SYSTEM and not local:
            return (
                f"{kernel_of(op)} has a {op.name} on {wiring.name} of scope "
                f"{op.scope.data}, which other GPUs do not see in order; make it "
                f"{FlagScope.SYSTEM}"
            )
    return None


def tiles_fit_blocks(wiring: Wiring) -> str | None:
    """A tile belongs to one block of one message."""
    for producer in () if wiring.in_group else wiring.producers:
        node = node_of(producer)
        if node is None:
            return (
                f"{kernel_of(producer)} stores to {wiring.name} what no node on the "
                "launch grid makes; only tiles of such a node can be counted"
            )
        if (reason := _crossed_ranks(wiring, producer, node)) is not None:
            return reason
        for flags in wiring.flags:
            if (reason := _crossed_blocks(wiring, producer, node, flags)) is not None:
                return reason
    return None


def _crossed_ranks(wiring: Wiring, producer: Producer, node: SpatialOp) -> str | None:
    """Say which tiles do not go to one receiver after another, None if all do."""
    split = producer.channel_type.split
    loops = [loop.factor for loop in node.loops if loop.dim == split]
    if split is None or not loops:
        return None
    shard = extents_of(producer.channel_type.message)[split]
    per_shard = len(loops) > 1 or tile_of(node, split) == shard
    if not (loops[0] == wiring.receive_buffer.ranks and per_shard):
        return (
            f"{kernel_of(producer)} cuts {split} into {loops[0]} parts, which are not "
            f"the shards of the {wiring.receive_buffer.ranks} receivers of "
            f"{wiring.name}; let the first loop over {split} run over the ranks"
        )
    if split not in destination_dims(kernel_op(producer), node):
        return (
            f"{kernel_of(producer)} makes every tile for one receiver of {wiring.name} "
            f"and signals all; name {split} in its destinations"
        )
    return None


def _crossed_blocks(
    wiring: Wiring, producer: Producer, node: SpatialOp, flags: FlagsOp
) -> str | None:
    """Say which tiles are in two blocks, None if each is in one."""
    sent = extents_of(producer.channel_type.sent)
    extents = extents_of(producer.channel_type.message)
    for loop in flags.type.blocks:
        dim, extent = loop.dim, extents[loop.dim]
        block = ceil_div(extent, loop.factor)
        looped = dim in node.factors
        tile = min(tile_of(node, dim), extent) if looped else extent
        part = node.last_cut(dim, sent[dim]).extent
        crossed = part < extent and part % block > 0
        if tile != block or crossed:
            parts = f", in parts of {part}," if crossed else ""
            return (
                f"{kernel_of(producer)} makes tiles of {tile} along {dim}{parts} where "
                f"the flags of {wiring.name} count blocks of {block}; make them equal"
            )
    return None


def writers_are_counted(wiring: Wiring) -> str | None:
    """Flags count the tiles of a block, and waits are for all of them."""
    for flags in wiring.flags:
        writers = flags.writers.value.data
        for producer in wiring.producers:
            signals = signals_of_blocks(wiring, producer, flags)
            if signals != frozenset({writers}):
                made = " or ".join(str(count) for count in sorted(signals))
                return (
                    f"the flags of {wiring.name} count {writers} writers, but "
                    f"{kernel_of(producer)} makes {made} tiles of each block; count "
                    "these"
                )
        if wiring.of_input and writers > 1:
            return (
                f"the flags of {wiring.name} count {writers} writers of an input, of "
                "which one program signals; count one"
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


def sources_are_shards(wiring: Wiring) -> str | None:
    """Loops that visit one source after another visit all ranks, a shard each."""
    ranks, type_ = wiring.receive_buffer.ranks, wiring.receive_buffer.type
    for consumer in wiring.consumers:
        named = _sources(consumer)
        for node, dim in dict.fromkeys(loops_over(consumer.result, type_.gather)):
            loops = [loop.factor for loop in node.loops if loop.dim == dim]
            per_shard = len(loops) > 1 or tile_of(node, dim) == type_.source_extent
            if dim in named and not (loops[0] == ranks and per_shard):
                return (
                    f"{kernel_of(consumer)} visits {dim} in {loops[0]} parts, which "
                    f"are not the shards of the {ranks} ranks that {wiring.name} "
                    f"gathers; let the first loop over {dim} run over the ranks, or "
                    f"leave {dim} out of its sources"
                )
    return None


def _sources(consumer: Consumer) -> tuple[str, ...]:
    """Return the dimensions whose loops wait for one source after another."""
    kernel = kernel_op(consumer)
    return () if kernel.sources is None else tuple(dim.data for dim in kernel.sources)


def slots_are_free(wiring: Wiring) -> str | None:
    """No rank overwrites what another rank still reads in an earlier launch."""
    if wiring.receive_buffer.slots.value.data > 1 or not wiring.consumers:
        return None
    if wiring.receive_buffer.in_one_memory:  # no launch of a GPU overtakes another
        return None
    points = [wiring.points[producer].barriers for producer in wiring.producers]
    first = 0 if wiring.of_input else min(points)
    last = max(wiring.points[consumer].barriers for consumer in wiring.consumers)
    if first > 0 or last < wiring.barriers:
        return None
    return (
        f"{wiring.name} has one slot: a rank that is a launch ahead overwrites what "
        "another still reads; use 2 slots, or a barrier of all ranks after the "
        "consumers"
    )


RULES: Iterable[Rule] = (
    buffer_joins_all_ranks,
    one_producer,
    epochs_are_shared,
    covered_is_stored,
    flags_belong_to_buffer,
    waits_are_signalled,
    reads_follow_waits,
    signals_follow_stores,
    memory_is_ordered,
    tiles_fit_blocks,
    writers_are_counted,
    sources_are_shards,
    slots_are_free,
    group_acts_together,
    root_acts_for_all,
    tiles_have_places,
)
