"""
Safeguards of emitted modules, and edits of their text that take each away.

What the device functions do inside, in `comet.runtime.shim`, is for `shim_mutations`;
what the assembly has to look like, for the tests of `compile_check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rank_matrix import Cell

PROGRAMS = {
    "push": Cell("ag_gemm", "push", 2),
    "long": Cell("ag_gemm", "push", 2),
    "bsp": Cell("ag_gemm", "bsp", 2),
    "pull": Cell("gemm_all_reduce", "pull", 2),
    "in_place": Cell("ag_gemm", "in_place", 2),
    "scatter": Cell("gemm_reduce_scatter", "fused", 2),
}
SIZES = {"M": 3, "N": 17, "K": 11}
"""Ragged for two ranks and for blocks of 16; two programs make a product."""
LONG = {**SIZES, "K": 150}
"""The share of a rank has two tiles: each source is waited for in a loop."""

RACE = frozenset({"RaceError"})
DEADLOCK = frozenset({"DeadlockError"})
WRONG = frozenset({"wrong result"})
BEYOND = frozenset({"ProgramError", "RaceError"})
"""What is not one's own memory, or not yet, may be somebody else's, or nobody's."""


@dataclass(frozen=True)
class Mutation:
    """Edits of a program, and what becomes of it."""

    program: str
    edits: tuple[tuple[str, str], ...]
    """What to replace, wherever it stands, and by what."""
    outcomes: frozenset[str]
    """What the scheduler may say; of races and wrong results it says the first."""


PUSH = "    # push to a_recv\n"
WAIT = "wait_all(a_flags_ptr, epoch, 1, WORLD)"
WAIT_FOR_ONE = "wait(a_flags_ptr + source, epoch)"
SIGNAL = "signal_all(a_flags_ptr + rank, epoch, rank, heap_bases, WORLD)"
SLOT = "slot = epoch % 2"
START = "        rank.barrier()  # flags are zero before anybody signals\n"
BARRIER = "        rank.barrier()\n"
ADD = "signal_add(c_flags_ptr + rank, 1, rank, dest, heap_bases)"
RESULT_MASK = "c_1,\n        mask=mask_m[:, None] & mask_n[None, :],"
BOX_MASK = "- start_k),\n            mask=mask_m[:, None] & mask_k[None, :],"

MUTATIONS = {
    "no wait": Mutation("push", ((WAIT, "pass"),), RACE),
    "a wait for the epoch before": Mutation(
        "push", ((WAIT, WAIT.replace("epoch", "epoch - 1")),), RACE
    ),
    "a wait for the next epoch": Mutation(
        "push", ((WAIT, WAIT.replace("epoch", "epoch + 1")),), DEADLOCK
    ),
    "a wait for the own flag only": Mutation(
        "push", ((WAIT, "wait_all(a_flags_ptr + rank, epoch, 1, 1)"),), RACE
    ),
    "no wait in the loop over sources": Mutation(
        "long", ((WAIT_FOR_ONE, "pass"),), RACE
    ),
    "a wait for oneself in the loop over sources": Mutation(
        "long", ((WAIT_FOR_ONE, WAIT_FOR_ONE.replace("source", "rank")),), RACE
    ),
    "no signal": Mutation("push", ((SIGNAL, "pass"),), DEADLOCK),
    "a signal to one rank": Mutation(
        "push", ((SIGNAL, SIGNAL.replace("WORLD", "1")),), DEADLOCK
    ),
    "a signal before the stores": Mutation(
        "push", ((SIGNAL, "pass"), (PUSH, f"    {SIGNAL}\n{PUSH}")), RACE
    ),
    "one slot": Mutation("push", ((SLOT, "slot = 0"),), RACE),
    "one slot to pull from": Mutation("pull", ((SLOT, "slot = 0"),), RACE),
    "one slot for an input in place": Mutation("in_place", (("epoch % 2", "0"),), RACE),
    "an input that is written where the last launch finds it": Mutation(
        "in_place", (("[epoch % 2]", "[(epoch + 1) % 2]"),), RACE
    ),
    "an input in place that nobody signals": Mutation(
        "in_place", ((SIGNAL, "pass"),), DEADLOCK
    ),
    "an input in place that nobody waits for": Mutation(
        "in_place", ((WAIT, "pass"),), RACE
    ),
    "a push to oneself": Mutation(
        "push",
        (("rebase(a_recv_ptr, rank, dest", "rebase(a_recv_ptr, rank, rank"),),
        WRONG,
    ),
    "a pull from oneself": Mutation(
        "pull",
        (("rebase(c_recv_ptr, rank, source", "rebase(c_recv_ptr, rank, rank"),),
        WRONG,
    ),
    "the same room for all senders": Mutation(
        "push", (("(slot * WORLD + rank)", "(slot * WORLD + dest)"),), RACE
    ),
    "an epoch that is not finished": Mutation(
        "push", (("finish_epoch(counters_ptr, epoch, 2)", "pass"),), RACE
    ),
    "an epoch that waits for one program more": Mutation(
        "push", (("epoch, 2)\n\n\nclass", "epoch, 3)\n\n\nclass"),), RACE
    ),
    "an epoch that does not wait for all programs": Mutation(
        "push", (("epoch, 2)\n\n\nclass", "epoch, 1)\n\n\nclass"),), RACE
    ),
    "no barrier after allocations": Mutation("push", ((START, ""),), BEYOND),
    "no barriers between kernels": Mutation("bsp", ((BARRIER, ""),), RACE),
    "too few arrivals": Mutation("pull", (("epoch * 2", "epoch * 2 - 1"),), RACE),
    "too many arrivals": Mutation("pull", (("epoch * 2", "epoch * 2 + 1"),), DEADLOCK),
    "a signal to who does not own the share": Mutation(
        "scatter", ((ADD, ADD.replace("dest", "rank")),), DEADLOCK
    ),
    "a signal that counts nothing": Mutation(
        "scatter", ((ADD, ADD.replace(" 1,", " 0,")),), DEADLOCK
    ),
    "a store beyond the edge": Mutation(
        "push", ((RESULT_MASK, RESULT_MASK.splitlines()[0]),), BEYOND
    ),
    "a load beyond the edge": Mutation(
        "push", ((BOX_MASK, BOX_MASK.splitlines()[0]),), BEYOND
    ),
    "a load beyond the own share": Mutation(
        "pull",
        (("stop_k = tl.maximum(tl.minimum(K_ALL - rank * K, K), 0)", "stop_k = K"),),
        WRONG,
    ),
}


@cache
def right(program: str) -> str:
    """Return the module as it is emitted."""
    return PROGRAMS[program].source(LONG if program == "long" else SIZES)


def mutated(mutation: Mutation) -> str:
    """Return the module after the edits, each of which has to change it."""
    text = right(mutation.program)
    for old, new in mutation.edits:
        assert old in text, f"the emitter no longer writes {old!r}"
        text = text.replace(old, new)
    return text


def swapped(text: str) -> str:
    """Return a module that launches its second kernel before its first."""
    head, first, second = text.split("        rank.launch(\n")
    end = second.index("        return ")
    launches = [first, second[:end]]
    return (
        head
        + "".join(f"        rank.launch(\n{part}" for part in launches[::-1])
        + (second[end:])
    )
