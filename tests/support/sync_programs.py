"""Right programs of two ranks, and what is edited in them to break them."""

from __future__ import annotations

import re

TYPES = """
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!H = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
!T1 = tensor<4x4xf32, #compound.dims<M, K @REG>>
!T2 = tensor<2x4xf32, #compound.dims<M, K @REG>>
!O = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2xf32, #compound.dims<M @HBM>>
!S = tensor<2xf32, #compound.dims<M @REG>>
"""
REFERENCE = """
func.func private @f__reference(%x: tensor<4x16xf32, #compound.dims<M, K>>)
    -> tensor<4xf32, #compound.dims<M>> attributes {comet.reference} {
  %y = compound.reduce add %x : tensor<4x16xf32, #compound.dims<M, K>>
    -> tensor<4xf32, #compound.dims<M>>
  func.return %y : tensor<4xf32, #compound.dims<M>>
}
"""
PUSHED = f"""{TYPES}
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, [M = 2]>
collective.mesh @gpus {{rank = 2}}
func.func @f(%x: !G) -> !O {{
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{{K = ["rank"]}}]
      outs(!O) sharded [{{}}] {{
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {{
    ^bb0(%x1: !L):
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %box writers 1 : !CH -> !F
      %other = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %others = dataflow.flags for %other writers 1 : !CH -> !F
      dataflow.kernel @first ins(%x1, %other, %others : !L, !CH, !F) {{
      ^bb0(%x2: !L, %other1: !CH, %others1: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {{
        ^bb0(%tile: !T):
          schedule.yield %tile : !T
        }}
        dataflow.push %t to %other1 epoch %e : !L, !CH
        dataflow.signal %other1 flags %others1 epoch %e release system fence : !CH, !F
        dataflow.yield
      }}
      dataflow.kernel @send ins(%x1, %box, %flags, %others : !L, !CH, !F, !F) {{
      ^bb0(%x2: !L, %box1: !CH, %flags1: !F, %others1: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {{
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }}
        dataflow.push %t to %box1 epoch %e : !L, !CH
        dataflow.signal %box1 flags %flags1 epoch %e release system fence : !CH, !F
        dataflow.yield
      }}
      %b = dataflow.buffer : !O
      %y = dataflow.kernel @sum ins(%box, %flags, %others : !CH, !F, !F)
          outs(%b : !O) sources ["K"] {{
      ^bb0(%box1: !CH, %flags1: !F, %others1: !F):
        %e = dataflow.epoch
        dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %box1 epoch %e : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!O) {{
        ^bb0(%w: !H):
          %n = schedule.temporal [K = 2, K = 1] ins(%w : !H) outs(!S) combine ["add"] {{
          ^bb0(%k: !T):
            %p = compound.reduce add %k : !T -> !S
            schedule.yield %p : !S
          }}
          schedule.yield %n : !S
        }}
        dataflow.yield %s : !O
      }} -> !O
      dataflow.yield %y : !O
    }} -> !O
    collective.yield %r : !O
  }}
  return %all : !O
}}
{REFERENCE}"""
"""Row sums: every rank sends its columns to all, and waits for those of all."""

SPLIT = f"""{TYPES}
!CH = !dataflow.channel<push gather K split M : !L -> !H>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {{rank = 2}}
func.func @f(%x: !G) -> !O {{
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{{K = ["rank"]}}]
      outs(!O) sharded [{{M = ["rank"]}}] {{
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {{
    ^bb0(%x1: !L):
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %box writers 1 : !CH -> !F
      dataflow.kernel @send ins(%x1, %box, %flags : !L, !CH, !F)
          destinations ["M"] {{
      ^bb0(%x2: !L, %box1: !CH, %flags1: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2, g1: M = 1] ins(%x2 : !L) outs(!L) {{
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }}
        dataflow.push %t to %box1 epoch %e : !L, !CH
        dataflow.signal %box1 flags %flags1 epoch %e release system fence : !CH, !F
        dataflow.yield
      }}
      %b = dataflow.buffer : !P
      %y = dataflow.kernel @sum ins(%box, %flags : !CH, !F) outs(%b : !P)
          sources ["K"] {{
      ^bb0(%box1: !CH, %flags1: !F):
        %e = dataflow.epoch
        dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %box1 epoch %e : !CH -> !H
        %s = schedule.spatial on grid [g0: M = 1] ins(%g : !H) outs(!P) {{
        ^bb0(%w: !H):
          %n = schedule.temporal [K = 2, K = 1] ins(%w : !H) outs(!S) combine ["add"] {{
          ^bb0(%k: !T):
            %p = compound.reduce add %k : !T -> !S
            schedule.yield %p : !S
          }}
          schedule.yield %n : !S
        }}
        dataflow.yield %s : !P
      }} -> !P
      dataflow.yield %y : !P
    }} -> !P
    collective.yield %r : !P
  }}
  return %all : !O
}}
{REFERENCE}"""
"""The same sums, but every rank gets, and adds, its own rows only."""

SEND = re.compile(r"      dataflow\.kernel @send .*?\n      }\n", re.S)
FIRST = re.compile(r"      dataflow\.kernel @first .*?\n      }\n", re.S)
SUM = re.compile(r"      %b = dataflow\.buffer.*?      } -> !O\n", re.S)
NODE = """        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
"""
PUSH = "        dataflow.push %t to %box1 epoch %e : !L, !CH\n"
ON_FLAGS = "%box1 flags %flags1 epoch %e"
SIGNAL = f"        dataflow.signal {ON_FLAGS} release system fence : !CH, !F\n"
WAIT = f"        dataflow.wait {ON_FLAGS} acquire system arrivals 1 : !CH, !F\n"
READ = "        %g = dataflow.read %box1 epoch %e : !CH -> !G\n"
BARRIER = "      dataflow.barrier\n"
BUFFER = "      %b = dataflow.buffer"
EPOCH = "        %e = dataflow.epoch\n"
BOX = "%box = dataflow.receive_buffer slots 2"
OF_INPUT = "%box = dataflow.receive_buffer of %x1 slots 2"
SENT = "[g0: M = 2] ins(%x2 : !L) outs(!L) {\n        ^bb0(%t0: !T):"
YIELDED = "schedule.yield %t0 : !T\n"
DESTINATIONS = '\n          destinations ["M"]'


def edited(*edits: tuple[str, str], text: str = PUSHED) -> str:
    """Return a right program after edits, each of which has to change it once."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def part(pattern: re.Pattern[str]) -> str:
    """Return a part of the right program."""
    (found,) = pattern.findall(PUSHED)
    return found


def moved(line: str, behind: str) -> str:
    """Return the program with some lines put behind others."""
    return edited((line, ""), (behind, behind + line))


IN_TWO = edited(
    (
        SENT,
        SENT.replace("[g0: M = 2]", "[g0: M = 2, g1: K = 2]").replace("!T)", "!T2)"),
    ),
    (YIELDED, "schedule.yield %t0 : !T2\n"),
    ("for %box writers 1", "for %box writers 2"),
    (WAIT, WAIT.replace("arrivals 1", "arrivals 2")),
)
"""The right program whose blocks are made of two tiles each."""

IN_ONE_KERNEL = edited(
    (part(SEND), ""),
    ("@sum ins(%box, %flags, ", "@sum ins(%x1, %box, %flags, "),
    (": !CH, !F, !F)\n          outs", ": !L, !CH, !F, !F)\n          outs"),
    ("^bb0(%box1: !CH, %flags1: !F, %o", "^bb0(%x2: !L, %box1: !CH, %flags1: !F, %o"),
    (WAIT, NODE + PUSH + SIGNAL + WAIT),
)
"""The right program with one kernel, in which programs that send come first."""

STORE = f"""      dataflow.kernel @store ins(%x3, %box : !L, !CH) {{
      ^bb0(%x2: !L, %box1: !CH):
{EPOCH}{NODE}        dataflow.stage %t to %box1 epoch %e : !L, !CH
        dataflow.yield
      }}
"""
"""A kernel that gives another value to the receive buffer, and signals nobody."""

PULLED = (
    PUSHED.replace("channel<push", "channel<pull")
    .replace("dataflow.push", "dataflow.stage")
    .replace("dataflow.read", "dataflow.pull")
)
"""The right program, in which ranks keep their columns for others to load."""

IN_PLACE = edited(
    (part(FIRST).replace("push", "stage"), ""),
    (part(SEND).replace("push", "stage"), ""),
    ('      %other = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH\n', ""),
    ("      %others = dataflow.flags for %other writers 1 : !CH -> !F\n", ""),
    (f'{BOX} on @gpus ["rank"] : !CH\n', f'{OF_INPUT} on @gpus ["rank"] : !CH, !L\n'),
    ("flags<2, [M = 2]>", "flags<2, []>"),
    (
        "@sum ins(%box, %flags, %others : !CH, !F, !F)",
        "@sum ins(%box, %flags : !CH, !F)",
    ),
    ("%flags1: !F, %others1: !F", "%flags1: !F"),
    (WAIT, SIGNAL + WAIT),
    text=PULLED,
)
"""The right program, whose columns the caller writes where others load them."""

FIVE_ROWS = PUSHED.replace("<4x", "<5x").replace("M = 2]", "M = 3]")
"""The right program on five rows, in tiles and blocks of two."""

LAST = """        %u = schedule.spatial on grid [g0: M = 1] ins(%s : !O) outs(!O) {
        ^bb0(%v: tensor<4xf32, #compound.dims<M @REG>>):
          schedule.yield %v : tensor<4xf32, #compound.dims<M @REG>>
        }
        dataflow.yield %s, %u : !O, !O
"""
IN_TURN = edited(
    (BUFFER, f"      %c = dataflow.buffer : !O\n{BUFFER}"),
    ("%y = dataflow.kernel", "%y0, %y = dataflow.kernel"),
    ("outs(%b : !O) sources", "outs(%b, %c : !O, !O) sources"),
    ("        dataflow.yield %s : !O\n", LAST),
    ("      } -> !O\n", "      } -> !O, !O\n"),
)
"""A kernel whose last program copies what the others have made."""

FOREIGN = f"""{TYPES}
!CH = !dataflow.channel<push gather K : !L -> !G>
func.func @f(%l: !L, %foreign: !CH) -> !L {{
  %r = dataflow.program ins(%l, %foreign : !L, !CH) {{
  ^bb0(%x1: !L, %box: !CH):
    dataflow.kernel @send ins(%x1, %box : !L, !CH) {{
    ^bb0(%x2: !L, %box1: !CH):
      %e = dataflow.epoch
      %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {{
      ^bb0(%t0: !T):
        schedule.yield %t0 : !T
      }}
      dataflow.push %t to %box1 epoch %e : !L, !CH
      dataflow.yield
    }}
    dataflow.yield %x1 : !L
  }} -> !L
  return %r : !L
}}
"""
"""A program that takes its receive buffer from outside."""
