"""
Programs written by hand: AG+GEMM on two ranks, one text for each pattern, and kernels
that use what all ranks make.
"""

from paths import HARDWARE

from comet.cost.from_ir.program import priced
from comet.cost.gpu.taxes import Taxes
from comet.dialects.arch import SystemOp
from comet.dialects.dataflow import ProgramOp

HEADER = """
#ONE = #schedule.launch<warps = 4, stages = 1, group = 1>
#THREE = #schedule.launch<warps = 4, stages = 3, group = 1>
!A = tensor<64x128xf16, #compound.dims<M, K @HBM>>
!L = tensor<64x64xf16, #compound.dims<M, K @HBM>>
!B = tensor<128x96xf16, #compound.dims<K, N @HBM>>
!C = tensor<64x96xf32, #compound.dims<M, N @HBM>>
!a = tensor<16x128xf16, #compound.dims<M, K @HBM>>
!b = tensor<128x32xf16, #compound.dims<K, N @HBM>>
!as = tensor<16x32xf16, #compound.dims<M, K @SMEM>>
!bs = tensor<32x32xf16, #compound.dims<K, N @SMEM>>
!c = tensor<16x32xf32, #compound.dims<M, N @REG>>
!t = tensor<16x64xf16, #compound.dims<M, K @REG>>
!PUSH = !dataflow.channel<push gather K : !L -> !A>
!PULL = !dataflow.channel<pull gather K : !L -> !A>
!FLAGS = !dataflow.flags<2, [M = 4]>
"""

PROGRAM = """
collective.mesh @{mesh} {{rank = 2}} at {{rank = "HBM"}}
func.func @f(%a: !A, %b: !B) -> !C {{
  %r = collective.spmd on @{mesh} ins(%a, %b : !A, !B)
      sharded [{{K = ["rank"]}}, {{}}] outs(!C) sharded [{{}}] {{
  ^bb0(%l: !L, %b0: !B):
    %p = dataflow.program ins(%l, %b0 : !L, !B) {{
    ^bb0(%x: !L, %w: !B):
      {body}
      dataflow.yield %c : !C
    }} -> !C
    collective.yield %p : !C
  }}
  func.return %r : !C
}}
"""

GEMM = """
    %c3 = schedule.spatial on grid [g0: M = 4, g1: N = 3] ins(%g, %w1 : !A, !B)
        outs(!C) attributes {{schedule.launch = #THREE}} {{
    ^bb1(%a4: !a, %b4: !b):
      %c4 = schedule.temporal [{rows}] ins(%a4, %b4 : !a, !b) outs(!c)
          combine ["add"] {{
      ^bb2(%a5: !as, %b5: !bs):
        %c5 = compound.contract %a5, %b5 : !as, !bs -> !c
        schedule.yield %c5 : !c
      }}
      schedule.yield %c4 : !c
    }}
    dataflow.yield %c3 : !C
"""

BY_SOURCE = GEMM.format(rows="K = 2, K = 2")

COPY = """
    %t1 = schedule.spatial on grid [g0: M = 4] ins(%x1 : !L) outs(!L)
        attributes {schedule.launch = #ONE} {
    ^bb1(%t2: !t):
      schedule.yield %t2 : !t
    }
"""

BSP = f"""
      dataflow.barrier
      %full = dataflow.buffer : !A
      %y = dataflow.kernel @gather ins(%x : !L) outs(%full : !A) {{
      ^bb0(%x1: !L):
        %y1 = collective.all_gather "K" %x1 on @MESH ["rank"] : !L -> !A
        dataflow.yield %y1 : !A
      }} -> !A
      dataflow.barrier
      %out = dataflow.buffer : !C
      %c = dataflow.kernel @gemm ins(%y, %w : !A, !B) outs(%out : !C) {{
      ^bb0(%g: !A, %w1: !B): {GEMM.format(rows="K = 4")}
      }} -> !C
"""


def channel_form(mode: str) -> str:
    """Return the body of the pattern push or pull."""
    kind = mode.upper()
    give, take = ("push", "read") if mode == "push" else ("stage", "pull")
    return f"""
      %ch = dataflow.channel on @MESH ["rank"] blocks [M = 4] : !{kind}
      dataflow.kernel @copy ins(%x, %ch : !L, !{kind}) {{
      ^bb0(%x1: !L, %ch1: !{kind}): {COPY}
        dataflow.{give} %t1 to %ch1 : !L, !{kind}
        dataflow.signal %ch1 : !{kind}
        dataflow.yield
      }}
      dataflow.barrier local
      %out = dataflow.buffer : !C
      %c = dataflow.kernel @gemm ins(%ch, %w : !{kind}, !B) outs(%out : !C)
          sources ["K"] {{
      ^bb0(%ch1: !{kind}, %w1: !B):
        dataflow.wait %ch1 : !{kind}
        %g = dataflow.{take} %ch1 : !{kind} -> !A {BY_SOURCE}
      }} -> !C
"""


LOWERED = f"""
      %box = dataflow.receive_buffer slots 2 on @MESH ["rank"] : !PUSH
      %flags = dataflow.flags for %box writers 1 : !PUSH -> !FLAGS
      %out = dataflow.buffer : !C
      %c = dataflow.kernel @both ins(%x, %box, %flags, %w : !L, !PUSH, !FLAGS, !B)
          outs(%out : !C) sources ["K"] {{
      ^bb0(%x1: !L, %box1: !PUSH, %flags1: !FLAGS, %w1: !B):
        %e = dataflow.epoch {COPY}
        dataflow.push %t1 to %box1 epoch %e : !L, !PUSH
        dataflow.signal %box1 flags %flags1 epoch %e release system fence
            : !PUSH, !FLAGS
        dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 1
            : !PUSH, !FLAGS
        %g = dataflow.read %box1 epoch %e : !PUSH -> !A {BY_SOURCE}
      }} -> !C
"""

BODIES = {
    "bsp": BSP,
    "push": channel_form("push"),
    "pull": channel_form("pull"),
    "fused": LOWERED,
}
"""The steps of the program by pattern; `fused` is one kernel with lowered channels."""


def program_text(pattern: str, mesh: str = "mi300x8") -> str:
    """Return a module with one function @f."""
    body = BODIES[pattern].replace("@MESH", f"@{mesh}2")
    return HEADER + PROGRAM.format(mesh=f"{mesh}2", body=body)


def hardware_pass(name: str = "mi300x8") -> str:
    """Return the pass that attaches a hardware file."""
    return f'attach-hardware{{path="{HARDWARE / name}.yaml"}}'


GATHERED = """%made = dataflow.buffer : !L
      %e = dataflow.kernel @make ins(%x1 : !L) outs(%made : !L) {
      ^bb0(%x2: !L):
        %n = schedule.spatial on grid [g0: M = TILES] ins(%x2 : !L) outs(!L) {
        ^bb0(%t: !T):
          %y = compound.map exp %t : !T -> !T
          schedule.yield %y : !T
        }
        dataflow.yield %n : !L
      } -> !L
      dataflow.barrier
      %whole = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%e : !L) outs(%whole : !G) {
      ^bb0(%e1: !L):
        %y = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.barrier
      %buffer = dataflow.buffer : !G
      %h = dataflow.kernel @twice ins(%g : !G) outs(%buffer : !G) {
      ^bb0(%g1: !G):
        %n = schedule.spatial on grid [g0: M = TILES] ins(%g1 : !G) outs(!G) {
        ^bb0(%t: !W):
          %y = compound.map add %t, %t : !W, !W -> !W
          schedule.yield %y : !W
        }
        dataflow.yield %n : !G
      } -> !G"""


def gathered(tiles: int) -> str:
    """Return kernels that make shards (`!L`), gather them (`!G`), and use all."""
    return GATHERED.replace("TILES", str(tiles))


def program_cost(program: ProgramOp, system: SystemOp) -> Taxes:
    """Return the taxes of a launch plan; raises `CostError` if it has no price."""
    return priced(program, system).taxes
