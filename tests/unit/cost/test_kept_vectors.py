"""Registers of vectors that a loop over rows keeps, or loads after the product."""

from collections.abc import Mapping

import pytest
from semantics import parse_module, run_passes
from triton_modules import hardware

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import compute_functions

ROWS = """
!a = tensor<512x1024xf16, #compound.dims<M, K @HBM>>
!at = tensor<128x64xf16, #compound.dims<M, K @SMEM>>
!am = tensor<128x1024xf16, #compound.dims<M, K @HBM>>
!b = tensor<1024x256xf16, #compound.dims<K, N @HBM>>
!bt = tensor<64x256xf16, #compound.dims<K, N @SMEM>>
!v = tensor<256xf16, #compound.dims<N @HBM>>
!o = tensor<256xf16, #compound.dims<N @{outside}>>
!t = tensor<256xf16, #compound.dims<N @REG>>
!w = tensor<256xf32, #compound.dims<N @REG>>
!c = tensor<128x256xf32, #compound.dims<M, N @REG>>
!y = tensor<512x256xf32, #compound.dims<M, N @HBM>>
func.func @rows(%a: !a, %b: !b, %v: !v, %u: !v) -> !y {{
  %y = schedule.spatial on grid [g0: M = 1]
      ins(%a, %b, %v, %u : !a, !b, !v, !v) outs(!y) {{
  ^bb0(%a1: !a, %b1: !b, %v1: !o, %u1: !o):
    %y1 = schedule.temporal [M = 4] ins(%a1, %b1, %v1, %u1 : !a, !b, !o, !o) outs(!y) {{
    ^bb1(%a2: !am, %b2: !b, %v2: !t, %u2: !t):
      %c = schedule.temporal [K = 16]
          ins(%a2, %b2 : !am, !b) outs(!c) combine ["add"] {{
      ^bb2(%a3: !at, %b3: !bt):
        %c1 = compound.contract %a3, %b3 : !at, !bt -> !c
        schedule.yield %c1 : !c
      }}
      %w = compound.cast %v2 : !t -> !w
      %m = compound.map mult %c, %w : !c, !w -> !c
      %x = compound.cast %u2 : !t -> !w
      %s = compound.map add %m, %x : !c, !w -> !c
      schedule.yield %s : !c
    }}
    schedule.yield %y1 : !y
  }}
  func.return %y : !y
}}
"""


def registers(outside: str, blocks: Mapping[str, int]) -> float:
    """Return the registers of a thread if vectors are at a level before the loop."""
    module = parse_module(ROWS.format(outside=outside))
    module = run_passes(module, hardware("h200x1.yaml"))
    (func,) = compute_functions(module)
    (node,) = grid_nodes(func)
    system = attached_system(module)
    gpu = device_of(system)
    summary = summarize(node, gpu_levels(system), gpu)
    return float(thread_registers(summary, blocks, LaunchNumbers(8, 3), gpu))


@pytest.mark.parametrize(("rows", "more"), [(128, 64), (512, 0)])
def test_vectors_from_outside_of_a_loop_are_all_kept_for_the_product(
    rows: int, more: int
) -> None:
    """
    Of two vectors, one is in use: the other one is 256 columns of f32 in four lanes.

    One tile of rows is no loop.
    """
    blocks = {"M": rows, "N": 256, "K": 64}
    kept = registers("REG", blocks) - registers("HBM", blocks)
    assert kept == pytest.approx(more, abs=1)
