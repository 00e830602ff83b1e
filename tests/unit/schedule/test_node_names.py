"""The names of nodes: what they say, that none comes twice, and what parts keep."""

from collections.abc import Sequence

import pytest
from semantics import parse_module, run_passes
from triton_modules import hardware
from xdsl.utils.exceptions import VerifyException

from comet.dialects.schedule.node import NodeOp

PROGRAM = """
!A = tensor<8x16xf16, #compound.dims<M, K>>
!B = tensor<16x32xf16, #compound.dims<K, N>>
!C = tensor<8x32xf16, #compound.dims<M, N>>
!R = tensor<8xf16, #compound.dims<M>>
func.func @main(%a: !A, %b: !B) -> !C {
  %c = compound.contract %a, %b : !A, !B -> !C
  %l = compound.reduce add %c : !C -> !R
  %p = compound.map div %c, %l : !C, !R -> !C
  func.return %p : !C
}
"""
ON_CORES = (
    "distribute{dim=N axes=cx,cy,kx,ky},insert-collectives,place-collectives{at=GB}"
)


def names(text: str, passes: str, machine: str = "edge.yaml") -> Sequence[str | None]:
    """Return the names of all nodes after `passes`, outermost first."""
    module = run_passes(parse_module(text), f"{hardware(machine)},{passes}")
    return [op.node_name for op in module.walk() if isinstance(op, NodeOp)]


def test_a_name_says_the_result_and_the_loop_of_a_kernel():
    passes = "fuse{strategy=partial between=spill}"
    assert names(PROGRAM, passes, "h200x1.yaml") == ["p", "l_n", "c_k", "p_n"]


def test_a_name_says_the_result_and_the_level_or_the_axes():
    inner = ["c_ob", "l_kx_ky", "l_ob", "p_kx_ky", "p_ob"]
    found = names(PROGRAM, f"{ON_CORES},fuse{{strategy=full}}")
    assert found == ["p_dram", "p_cx_cy", "p_gb", "c_kx_ky", *inner]


def test_the_kind_of_op_tells_apart_and_after_it_a_number():
    one_name = (
        PROGRAM.replace("%c", "%p")
        .replace("%p = compound.map div %p, %l", "%p_1 = compound.map div %p, %l")
        .replace("return %p", "return %p_1")
    )
    found = names(one_name, "fuse{strategy=none}")
    roots = [name for name in found if name is not None and name.endswith("_dram")]
    assert roots == ["p_contract_dram", "l_dram", "p_div_dram"]
    twice = names(PROGRAM, "fuse{strategy=partial between=recompute}", "h200x1.yaml")
    assert [name for name in twice if name is not None and "c_k" in name] == [
        "c_k",
        "c_k_2",
    ]


def test_a_result_without_a_name_is_known_by_its_op():
    unnamed = PROGRAM.replace("%c", "%0").replace("%p", "%1")
    found = names(unnamed, "fuse{strategy=none}", "h200x1.yaml")
    assert found == ["contract", "contract_k", "div"]


NEST = """
!W = tensor<8xf32, #compound.dims<M @GB>>
!H = tensor<4xf32, #compound.dims<M @GB>>
!T = tensor<2xf32, #compound.dims<M @OB>>
func.func @main(%x: !W) -> !W {
  %y = schedule.temporal @e_ob [M = 2] ins(%x : !W) outs(!W) {
  ^bb0(%h: !H):
    %z = schedule.temporal @INNER [M = 2] ins(%h : !H) outs(!H) {
    ^bb1(%t: !T):
      %e = compound.map exp %t : !T -> !T
      schedule.yield %e : !T
    }
    schedule.yield %z : !H
  }
  %w = schedule.temporal @OTHER [M = 4] ins(%y : !W) outs(!W) {
  ^bb2(%t: !T):
    %e = compound.map exp %t : !T -> !T
    schedule.yield %e : !T
  }
  func.return %w : !W
}
"""


def test_the_parts_of_a_split_node_keep_its_name():
    parse_module(NEST.replace("INNER", "e_ob"))
    with pytest.raises(VerifyException, match="is named @e_ob, as another node is"):
        parse_module(NEST.replace("OTHER", "e_ob"))
    with pytest.raises(VerifyException, match="is named @OTHER, as another node is"):
        parse_module(NEST.replace("INNER", "OTHER"))
