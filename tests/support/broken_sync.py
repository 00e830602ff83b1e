"""
Programs that `verify-sync` rejects, each with the reason, and what they do when run.

Every one is a right program without one safeguard. Passed by the verifier on purpose
and run on the scheduler, it races or hangs; where it does not, `kept` says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from rank_runs import Outcome
from sync_programs import (
    BARRIER,
    BOX,
    BUFFER,
    DESTINATIONS,
    EPOCH,
    FIVE_ROWS,
    FOREIGN,
    IN_ONE_KERNEL,
    IN_PLACE,
    IN_TURN,
    IN_TWO,
    NODE,
    OF_INPUT,
    PULLED,
    PUSH,
    READ,
    SEND,
    SENT,
    SIGNAL,
    SPLIT,
    STORE,
    SUM,
    WAIT,
    YIELDED,
    edited,
    moved,
    part,
)


@dataclass(frozen=True)
class Broken:
    """A program without one of its safeguards."""

    text: str
    reason: str
    """Part of what `verify-sync` says."""
    outcome: Outcome = "right"
    """What happens when it is run."""
    shim: str | None = None
    """The safeguard that the runtime has to lack, for what kernels cannot say."""
    kept: str | None = None
    """Why it runs right, or cannot be run."""


CUT = "lower-to-triton cannot write it"

BROKEN = {
    "no signal": Broken(
        edited((SIGNAL, "")),
        "@sum waits for flags of %box that nobody signals, for ever",
        "DeadlockError",
    ),
    "no wait": Broken(
        edited((WAIT, "")),
        "@sum reads %box without a wait on its flags, and no barrier",
        "RaceError",
    ),
    "a pull without a wait": Broken(
        edited((WAIT, ""), text=PULLED),
        "@sum reads %box without a wait on its flags, and no barrier",
        "RaceError",
    ),
    "an input that nobody signals": Broken(
        edited((SIGNAL, ""), text=IN_PLACE),
        "@sum waits for flags of %box that nobody signals, for ever",
        "DeadlockError",
    ),
    "an input that is signalled after the wait": Broken(
        edited((SIGNAL, ""), (WAIT, WAIT + SIGNAL), text=IN_PLACE),
        "@sum waits for %box before it has stored its own shard",
        kept=CUT,
    ),
    "an input that is signalled twice": Broken(
        edited((SIGNAL, SIGNAL * 2), text=IN_PLACE),
        "@sum signals a tile of %box twice",
        kept="the flag has one writer, which says the same twice",
    ),
    "an input that nobody waits for": Broken(
        edited((WAIT, ""), text=IN_PLACE),
        "@sum reads %box without a wait on its flags, and no barrier",
        "RaceError",
    ),
    "one slot for an input": Broken(
        edited((OF_INPUT, OF_INPUT.replace("2", "1")), text=IN_PLACE),
        "%box has one slot",
        "RaceError",
    ),
    "an input with two writers": Broken(
        edited(("for %box writers 1", "for %box writers 2"), text=IN_PLACE),
        "the flags of %box count 2 writers of an input, of which one program signals",
        kept="the flag gets one signal, and one is waited for",
    ),
    "a kernel that stores over an input": Broken(
        edited(
            ("program ins(%l : !L)", "program ins(%l, %l : !L, !L)"),
            ("^bb0(%x1: !L)", "^bb0(%x1: !L, %x3: !L)"),
            (BUFFER, STORE + BUFFER),
            text=IN_PLACE,
        ),
        "@store stores to %box, where the caller has written an input",
        kept=CUT,
    ),
    "a wait after the read": Broken(
        moved(WAIT, READ), "@sum reads %box before it waits", kept=CUT
    ),
    "swapped kernels": Broken(
        edited((part(SEND), ""), (part(SUM), part(SUM) + part(SEND))),
        "@sum waits for @send, which every rank launches only afterwards",
        "DeadlockError",
    ),
    "a signal before the stores": Broken(
        moved(PUSH, SIGNAL), "@send signals %box before it stores", kept=CUT
    ),
    "no fence": Broken(
        edited((SIGNAL, SIGNAL.replace(" fence", ""))),
        "@send signals %box without a fence",
        "RaceError",
        "signal all without barrier",
    ),
    "a relaxed signal": Broken(
        edited((SIGNAL, SIGNAL.replace("release", "relaxed"))),
        "dataflow.signal on %box that is relaxed: its stores may move past it",
        "RaceError",
        "signal all relaxed",
    ),
    "a relaxed wait": Broken(
        edited((WAIT, WAIT.replace("acquire", "relaxed"))),
        "dataflow.wait on %box that is relaxed: its loads may move past it",
        "RaceError",
        "wait all relaxed",
    ),
    "a signal of gpu scope": Broken(
        edited((SIGNAL, SIGNAL.replace("system", "gpu"))),
        "dataflow.signal on %box of scope gpu, which other GPUs do not see",
        "RaceError",
        "signal all in one gpu",
    ),
    "a wait of gpu scope": Broken(
        edited((WAIT, WAIT.replace("system", "gpu"))),
        "dataflow.wait on %box of scope gpu, which other GPUs do not see",
        "RaceError",
        "wait all in one gpu",
    ),
    "too many writers": Broken(
        edited(
            ("for %box writers 1", "for %box writers 3"),
            (WAIT, WAIT.replace("arrivals 1", "arrivals 3")),
        ),
        "the flags of %box count 3 writers, but @send makes 1 tiles of each block",
        "DeadlockError",
    ),
    "too few writers": Broken(
        IN_TWO.replace("for %box writers 2", "for %box writers 1").replace(
            "arrivals 2", "arrivals 1"
        ),
        "the flags of %box count 1 writers, but @send makes 2 tiles of each block",
        "RaceError",
    ),
    "a wait for too many": Broken(
        edited((WAIT, WAIT.replace("arrivals 1", "arrivals 2"))),
        "@sum waits for 2 of the 1 tiles of a block of %box and never ends",
        "DeadlockError",
    ),
    "a wait for too few": Broken(
        IN_TWO.replace("arrivals 2", "arrivals 1"),
        "@sum waits for 1 of the 2 tiles of a block of %box and reads what is not",
        "RaceError",
    ),
    "a single slot": Broken(
        edited((BOX, BOX.replace("2", "1"))),
        "%box has one slot: a rank that is a launch ahead overwrites",
        "RaceError",
    ),
    "a reused flag": Broken(
        edited((SIGNAL, SIGNAL.replace("%flags1", "%others1"))),
        "@send uses %others, the flags of %other, for %box",
        "DeadlockError",
    ),
    "a wait on another's flag": Broken(
        edited((WAIT, WAIT.replace("%flags1", "%others1"))),
        "@sum uses %others, the flags of %other, for %box",
        "RaceError",
    ),
    "a second push": Broken(
        edited((PUSH, PUSH + PUSH)),
        "@send stores to %box in the launch in which @send has done so",
        kept="the same programs store the same twice, before they signal",
    ),
    "a second kernel that gives": Broken(
        edited(
            (
                part(SEND),
                part(SEND) + part(SEND).replace("@send", "@again").replace(SIGNAL, ""),
            )
        ),
        "@again stores to %box in the launch in which @send has done so",
        "RaceError",
    ),
    "nobody gives": Broken(
        edited((PUSH, ""), (SIGNAL, "")),
        "%box is read and has no producer",
        "DeadlockError",
    ),
    "a signal of who does not give": Broken(
        edited((SIGNAL, ""), (WAIT, SIGNAL + WAIT)),
        "@sum signals %box, to which it does not store",
        kept=CUT,
    ),
    "a wait before the own share": Broken(
        IN_ONE_KERNEL.replace(NODE + PUSH + SIGNAL, "").replace(
            "        dataflow.yield %s : !O\n",
            f"{NODE}{PUSH}{SIGNAL}        dataflow.yield %s : !O\n",
        ),
        "@sum waits for %box before it has stored its own shard, and so do all",
        "DeadlockError",
    ),
    "what no grid makes": Broken(
        edited((PUSH, PUSH.replace("%t", "%x2"))),
        "@send stores to %box what no node on the launch grid makes",
        kept=CUT,
    ),
    "tiles that are not for one receiver after another": Broken(
        edited(
            ("[g0: M = 2, g1: M = 1]", "[g0: M = 4]"),
            ("^bb0(%t0: !T)", "^bb0(%t0: tensor<1x8xf32, #compound.dims<M, K @REG>>)"),
            (
                "yield %t0 : !T",
                "yield %t0 : tensor<1x8xf32, #compound.dims<M, K @REG>>",
            ),
            text=SPLIT,
        ),
        "@send cuts M into 4 parts, which are not the shards of the 2 receivers of",
        "RaceError",
    ),
    "receivers that are not named": Broken(
        edited((DESTINATIONS, ""), text=SPLIT),
        "@send makes every tile for one receiver of %box and signals all",
        "RaceError",
    ),
    "two counters": Broken(
        edited(
            (part(SEND), part(SEND).replace(EPOCH, EPOCH + EPOCH.replace("%e", "%f")))
        ),
        "@send counts its launches 2 times",
        kept="a kernel counts once, whatever the text",
    ),
    "no epoch": Broken(
        edited((READ, READ.replace(" epoch %e", ""))),
        "@sum uses %box without an epoch of its own, so that launches do not take",
        kept="a kernel takes the slot of the epoch that it counts",
    ),
    "a signal twice": Broken(
        IN_TWO.replace(SIGNAL, SIGNAL + SIGNAL),
        "@send signals a tile of %box twice",
        "RaceError",
    ),
    "a tile in two blocks": Broken(
        edited(
            (SENT, SENT.replace("M = 2", "K = 2").replace("!T)", "!T1)")),
            (YIELDED, "schedule.yield %t0 : !T1\n"),
        ),
        "@send makes tiles of 4 along M where the flags of %box count blocks of 2",
        kept=CUT,
    ),
    "a tile that begins in the middle of a block": Broken(
        edited(
            (SENT.replace("M = 2", "M = 3"), SENT.replace("M = 2", "M = 2, g1: M = 2")),
            text=FIVE_ROWS,
        ),
        "@send makes tiles of 2 along M, in parts of 3, where the flags of %box",
        kept=CUT,
    ),
    "sources that are no shards": Broken(
        edited(
            ("[K = 2, K = 1] ins(%w", "[K = 4] ins(%w"),
            ("^bb0(%k: !T):", "^bb0(%k: !T2):"),
            ("%p = compound.reduce add %k : !T ", "%p = compound.reduce add %k : !T2 "),
        ),
        "@sum visits K in 4 parts, which are not the shards of the 2 ranks",
        kept="a loop over other parts waits for all ranks before it begins",
    ),
    "a local barrier for one of all ranks": Broken(
        edited((WAIT, ""), (BUFFER, "      dataflow.barrier local\n" + BUFFER)),
        "@sum reads %box without a wait on its flags, and no barrier of all ranks",
        "RaceError",
    ),
    "no barrier": Broken(
        edited((WAIT, ""), (SIGNAL, "")),
        "@sum reads %box without a wait on its flags, and no barrier of all ranks",
        "RaceError",
    ),
    "one slot and no barrier after the readers": Broken(
        edited(
            (WAIT, ""),
            (SIGNAL, ""),
            (BUFFER, BARRIER + BUFFER),
            (BOX, BOX.replace("2", "1")),
        ),
        "%box has one slot: a rank that is a launch ahead overwrites",
        "RaceError",
    ),
    "a node that reads what others of its kernel make": Broken(
        IN_TURN,
        "@sum reads %s that other programs of the same launch make, and waits for",
        "RaceError",
    ),
    "a receive buffer of somebody else": Broken(
        FOREIGN,
        "@send uses %foreign, which is no receive buffer of its program",
        kept=CUT,
    ),
    "ranks that are left out": Broken(
        edited(("@gpus {rank = 2}", "@gpus {node = 2, rank = 2}")),
        "%box joins 2 ranks of @gpus, and the program runs on all 4 of @gpus; let",
        kept=CUT,
    ),
    "ranks of another mesh": Broken(
        edited(
            ("collective.mesh", "collective.mesh @pair {rank = 2}\ncollective.mesh"),
            (f"{BOX} on @gpus", f"{BOX} on @pair"),
        ),
        "%box joins 2 ranks of @pair, and the program runs on all 2 of @gpus; let",
        kept="both meshes have the same ranks here",
    ),
}
