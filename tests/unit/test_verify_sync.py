"""The pass `verify-sync`: every safeguard, taken from a right program, is missed."""

import re

import pytest
from semantics import parse_module, run_passes
from xdsl.utils.exceptions import PassFailedException

PUSHED = """
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
!T1 = tensor<4x4xf32, #compound.dims<M, K @REG>>
!T2 = tensor<2x4xf32, #compound.dims<M, K @REG>>
!W = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!O = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2xf32, #compound.dims<M @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, [M = 2]>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !G) -> !O {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}]
      outs(!O) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %box = dataflow.inbox slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %box writers 1 : !CH -> !F
      %other = dataflow.inbox slots 2 on @gpus ["rank"] : !CH
      %others = dataflow.flags for %other writers 1 : !CH -> !F
      dataflow.kernel @send ins(%x1, %box, %flags, %other, %others
          : !L, !CH, !F, !CH, !F) {
      ^bb0(%x2: !L, %box1: !CH, %flags1: !F, %other1: !CH, %others1: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        dataflow.push %t to %box1 epoch %e : !L, !CH
        dataflow.signal %box1 flags %flags1 epoch %e release system fence : !CH, !F
        dataflow.push %t to %other1 epoch %e : !L, !CH
        dataflow.signal %other1 flags %others1 epoch %e release system fence : !CH, !F
        dataflow.yield
      }
      %b = dataflow.buffer : !O
      %y = dataflow.kernel @sum ins(%box, %flags, %other, %others
          : !CH, !F, !CH, !F) outs(%b : !O) attributes {dataflow.sources = ["K"]} {
      ^bb0(%box1: !CH, %flags1: !F, %other1: !CH, %others1: !F):
        %e = dataflow.epoch
        dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %box1 epoch %e : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!O) {
        ^bb0(%w: !W):
          %n = schedule.temporal [K = 2, K = 1] ins(%w : !W) outs(!P) combine ["add"] {
          ^bb0(%k: !T):
            %p = compound.reduce add %k : !T -> !P
            schedule.yield %p : !P
          }
          schedule.yield %n : !P
        }
        dataflow.yield %s : !O
      } -> !O
      dataflow.yield %y : !O
    } -> !O
    collective.yield %r : !O
  }
  return %all : !O
}
"""
SPLIT = """
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!H = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
!O = tensor<2xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather K split M : !L -> !H>
collective.mesh @gpus {rank = 2}
func.func @f(%l: !L) -> !O {
  %r = dataflow.program ins(%l : !L) {
  ^bb0(%x1: !L):
    %box = dataflow.inbox slots 2 on @gpus ["rank"] : !CH
    dataflow.kernel @send ins(%x1, %box : !L, !CH) {
    ^bb0(%x2: !L, %box1: !CH):
      %e = dataflow.epoch
      %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
      ^bb0(%t0: !T):
        schedule.yield %t0 : !T
      }
      dataflow.push %t to %box1 epoch %e : !L, !CH
      dataflow.yield
    }
    dataflow.barrier
    %b = dataflow.buffer : !O
    %y = dataflow.kernel @sum ins(%box : !CH) outs(%b : !O) {
    ^bb0(%box1: !CH):
      %e = dataflow.epoch
      %g = dataflow.read %box1 epoch %e : !CH -> !H
      %s = compound.reduce add %g : !H -> !O
      dataflow.yield %s : !O
    } -> !O
    dataflow.yield %y : !O
  } -> !O
  return %r : !O
}
"""
EACH = SPLIT.replace("[g0: M = 2] ins(%x2", "[g0: M = 2, g1: M = 1] ins(%x2").replace(
    "@send ins(%x1, %box : !L, !CH) {",
    '@send ins(%x1, %box : !L, !CH) attributes {dataflow.destinations = ["M"]} {',
)
"""What is split, with a tile for each receiver."""
SEND = re.compile(r"      dataflow\.kernel @send .*?\n      }\n", re.S)
PUSH = "        dataflow.push %t to %box1 epoch %e : !L, !CH\n"
ON_FLAGS = "%box1 flags %flags1 epoch %e"
SIGNAL = f"        dataflow.signal {ON_FLAGS} release system fence : !CH, !F\n"
WAIT = f"        dataflow.wait {ON_FLAGS} acquire system arrivals 1 : !CH, !F\n"
READ = "        %g = dataflow.read %box1 epoch %e : !CH -> !G\n"
BARRIER = "      dataflow.barrier\n"
CHANNEL = 'dataflow.channel on @gpus ["rank"] blocks []'
BUFFER = "      %b = dataflow.buffer"
EPOCH = "        %e = dataflow.epoch\n"


def edited(*edits: tuple[str, str]) -> str:
    """Return the right program after edits, each of which has to change it once."""
    text = PUSHED
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def swapped() -> str:
    """Return the program whose consumer is launched before its producer."""
    (send,) = SEND.findall(PUSHED)
    end = "      } -> !O\n"
    return PUSHED.replace(send, "").replace(end, end + send)


def moved(line: str, behind: str) -> str:
    """Return the program with one line put behind another."""
    return edited((line, ""), (behind, behind + line))


FOREIGN = (
    SPLIT.replace("@f(%l: !L)", "@f(%l: !L, %foreign: !CH)")
    .replace(
        "ins(%l : !L) {\n  ^bb0(%x1: !L):",
        "ins(%l, %foreign : !L, !CH) {\n  ^bb0(%x1: !L, %box: !CH):",
    )
    .replace('    %box = dataflow.inbox slots 2 on @gpus ["rank"] : !CH\n', "")
)
"""A program that takes an inbox from outside."""
BROKEN = {
    "an inbox of somebody else": (
        FOREIGN,
        "@send uses %foreign, which is no inbox of its program",
    ),
    "no signal": (
        edited((SIGNAL, "")),
        "@sum waits for flags of %box that nobody signals, for ever",
    ),
    "no wait": (
        edited((WAIT, "")),
        "@sum reads %box without a wait on its flags, and no barrier",
    ),
    "a wait behind the read": (moved(WAIT, READ), "@sum reads %box before it waits"),
    "swapped kernels": (
        swapped(),
        "@sum waits for @send, which every rank launches only afterwards",
    ),
    "a signal before the stores": (
        moved(PUSH, SIGNAL),
        "@send signals %box before it stores",
    ),
    "no fence": (
        edited((SIGNAL, SIGNAL.replace(" fence", ""))),
        "@send signals %box without a fence",
    ),
    "a relaxed signal": (
        edited((SIGNAL, SIGNAL.replace("release", "relaxed"))),
        "dataflow.signal on %box that is relaxed: its stores may move past it",
    ),
    "a relaxed wait": (
        edited((WAIT, WAIT.replace("acquire", "relaxed"))),
        "dataflow.wait on %box that is relaxed: its loads may move past it",
    ),
    "a signal of gpu scope": (
        edited((SIGNAL, SIGNAL.replace("system", "gpu"))),
        "dataflow.signal on %box of scope gpu, which other GPUs do not see",
    ),
    "a wait of gpu scope": (
        edited((WAIT, WAIT.replace("system", "gpu"))),
        "dataflow.wait on %box of scope gpu, which other GPUs do not see",
    ),
    "too many writers": (
        edited(
            ("for %box writers 1", "for %box writers 3"),
            (WAIT, WAIT.replace("arrivals 1", "arrivals 3")),
        ),
        "the flags of %box count 3 writers, but @send makes 1 tiles of each block",
    ),
    "a wait for too many": (
        edited((WAIT, WAIT.replace("arrivals 1", "arrivals 2"))),
        "@sum waits for 2 of the 1 tiles of a block of %box and never ends",
    ),
    "a wait for too few": (
        edited(
            ("for %box writers 1", "for %box writers 2"),
            ("[g0: M = 2] ins(%x2 : !L)", "[g0: M = 2, g1: K = 2] ins(%x2 : !L)"),
            (
                "^bb0(%t0: !T):",
                "^bb0(%t0: tensor<2x4xf32, #compound.dims<M, K @REG>>):",
            ),
            (
                "schedule.yield %t0 : !T",
                "schedule.yield %t0 : tensor<2x4xf32, #compound.dims<M, K @REG>>",
            ),
        ),
        "@sum waits for 1 of the 2 tiles of a block of %box and reads what is not",
    ),
    "a single slot": (
        edited(("inbox slots 2", "inbox slots 1")),
        "%box has one slot: a rank that is a launch ahead overwrites",
    ),
    "a reused flag": (
        edited((SIGNAL, SIGNAL.replace("%flags1", "%others1"))),
        "@send uses %others, the flags of %other, for %box",
    ),
    "a wait on another's flag": (
        edited((WAIT, WAIT.replace("%flags1", "%others1"))),
        "@sum uses %others, the flags of %other, for %box",
    ),
    "a second push": (
        edited((PUSH, PUSH + PUSH)),
        "@send gives to %box in the launch in which @send has done so",
    ),
    "nobody gives": (
        edited((PUSH, ""), (SIGNAL, "")),
        "%box is read and nobody gives to it",
    ),
    "a signal of who does not give": (
        edited((SIGNAL, ""), (WAIT, SIGNAL + WAIT)),
        "@sum signals %box, to which it does not give",
    ),
    "a wait before the own share": (
        edited((PUSH, WAIT + PUSH)),
        "@send waits for %box before it has given its own share, and so do all",
    ),
    "what no grid makes": (
        edited((PUSH, PUSH.replace("%t", "%x2"))),
        "@send gives to %box what no node on the launch grid makes",
    ),
    "a tile for two receivers": (
        SPLIT,
        "@send makes tiles along M that are for two receivers of %box",
    ),
    "receivers that are not named": (
        EACH.replace(' attributes {dataflow.destinations = ["M"]}', ""),
        "@send makes every tile for one receiver of %box and tells all of it",
    ),
    "two counters": (
        edited((EPOCH, EPOCH + EPOCH.replace("%e", "%e2"))),
        "@send counts its launches 2 times",
    ),
    "no epoch": (
        edited((READ, READ.replace(" epoch %e", ""))),
        "@sum uses %box without an epoch of its own, so that launches do not take",
    ),
    "a signal twice": (
        edited((SIGNAL, SIGNAL + SIGNAL)),
        "@send signals a tile of %box twice",
    ),
    "a tile in two blocks": (
        edited(
            ("[g0: M = 2] ins(%x2 : !L)", "[g0: K = 2] ins(%x2 : !L)"),
            ("^bb0(%t0: !T):", "^bb0(%t0: !T1):"),
            ("schedule.yield %t0 : !T\n", "schedule.yield %t0 : !T1\n"),
        ),
        "@send makes tiles of 4 along M where the flags of %box count blocks of 2",
    ),
    "sources that are no ranks": (
        edited(
            ("[K = 2, K = 1] ins(%w", "[K = 4] ins(%w"),
            ("^bb0(%k: !T):", "^bb0(%k: !T2):"),
            ("%p = compound.reduce add %k : !T ", "%p = compound.reduce add %k : !T2 "),
        ),
        "@sum loops over K in 4 parts, which are not the shares of the 2 ranks",
    ),
    "a local barrier for one of all ranks": (
        edited(
            (WAIT, ""), ("      %b = ", "      dataflow.barrier local\n      %b = ")
        ),
        "@sum reads %box without a wait on its flags, and no barrier of all ranks",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_rejected_with_the_reason(name: str):
    text, reason = BROKEN[name]
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        run_passes(parse_module(text), "verify-sync")


def test_the_reasons_differ():
    assert len({reason for _, reason in BROKEN.values()}) == len(BROKEN)


def test_the_right_program_is_accepted_as_it_is():
    module = parse_module(PUSHED)
    assert str(run_passes(module, "verify-sync")) == str(module)


def test_barriers_of_all_ranks_stand_for_waits():
    text = edited((WAIT, ""), (SIGNAL, ""), (BUFFER, BARRIER + BUFFER))
    run_passes(parse_module(text), "verify-sync")


def test_one_slot_is_enough_between_barriers_on_both_sides():
    behind = edited(("inbox slots 2", "inbox slots 1"), (BUFFER, BARRIER + BUFFER))
    with pytest.raises(PassFailedException, match="%box has one slot"):
        run_passes(parse_module(behind), "verify-sync")
    start = "      dataflow.kernel @send"
    both = behind.replace(start, BARRIER + start)
    run_passes(parse_module(both), "verify-sync")


def test_tiles_may_be_for_all_receivers_or_one_each():
    whole = SPLIT.replace("[g0: M = 2] ins(%x2", "[g0: K = 2] ins(%x2")
    whole = whole.replace("!T = tensor<2x8x", "!T = tensor<4x4x")
    run_passes(parse_module(whole), "verify-sync")
    run_passes(parse_module(EACH), "verify-sync")


def test_channels_have_to_be_lowered():
    text = SPLIT.replace('dataflow.inbox slots 2 on @gpus ["rank"]', CHANNEL)
    reason = "%box is a channel still; run lower-channels first"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(parse_module(text), "verify-sync")
