"""The choice of pattern and communication tiles: the cheapest of what applies."""

import pytest
from rank_plans import hardware_pass, program_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.choose_pattern import (
    PATTERNS,
    Candidate,
    candidates,
    choose_pattern,
    program_cost,
    with_pattern,
)


def bsp() -> ModuleOp:
    return run_passes(parse_module(program_text("bsp")), hardware_pass())


def test_the_cheapest_of_all_is_chosen():
    module = bsp()
    before = str(module)
    choice = choose_pattern(module)
    assert str(module) == before
    cheapest = min(choice.costs.values(), key=lambda taxes: taxes.total)
    assert choice.costs[choice.best].total == cheapest.total
    assert {candidate.pattern for candidate in choice.costs} >= {"push", "pull", "bsp"}
    found = choice.of_pattern(choice.best.pattern)
    assert found is not None
    assert found[1] == cheapest


def test_a_cost_is_that_of_the_program_that_would_be_launched():
    choice = choose_pattern(bsp(), ("pull",), resident=True)
    for candidate, taxes in choice.costs.items():
        changed = with_pattern(bsp(), candidate)
        (program,) = (op for op in changed.walk() if isinstance(op, ProgramOp))
        system = attached_system(changed)
        again = program_cost(program, system, resident=True)
        assert taxes.total == pytest.approx(again.total)
        assert program_cost(program, system).total > again.total


def test_tiles_of_the_messages_are_part_of_the_space():
    tried = list(candidates(bsp(), "push"))
    blocks = [None, "M=1 K=1", "M=1 K=4", "M=4 K=1", "M=4 K=4"]
    assert tried == [Candidate("push", each) for each in blocks]
    choice = choose_pattern(bsp(), ("push",))
    assert set(choice.costs) == set(tried)


UNEVEN = """
!L = tensor<9x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<9x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<3x8xf32, #compound.dims<M, K @REG>>
!W = tensor<3x16xf32, #compound.dims<M, K @REG>>
collective.mesh @h200x8 {rank = 2} at {rank = "HBM"}
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}]
      outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %made = dataflow.buffer : !L
      %e = dataflow.kernel @make ins(%x1 : !L) outs(%made : !L) {
      ^bb0(%x2: !L):
        %n = schedule.spatial on grid [g0: M = 3] ins(%x2 : !L) outs(!L) {
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
      %last = dataflow.buffer : !G
      %h = dataflow.kernel @twice ins(%g : !G) outs(%last : !G) {
      ^bb0(%g1: !G):
        %n = schedule.spatial on grid [g0: M = 3] ins(%g1 : !G) outs(!G) {
        ^bb0(%t: !W):
          %y = compound.map add %t, %t : !W, !W -> !W
          schedule.yield %y : !W
        }
        dataflow.yield %n : !G
      } -> !G
      dataflow.yield %h : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}
"""
"""A kernel makes tiles of three rows, which no program of a GPU is exactly."""


def test_what_does_not_apply_says_why():
    choice = choose_pattern(run_passes(parse_module(UNEVEN), hardware_pass()))
    assert set(choice.refused) == {"fused"}
    assert "does not apply" in choice.refused["fused"]
    assert choice.of_pattern("fused") is None
    assert {c.pattern for c in choice.costs} == set(PATTERNS) - {"fused"}


def test_rejects_a_program_that_no_pattern_fits():
    module = run_passes(parse_module(UNEVEN), hardware_pass())
    with pytest.raises(PassFailedException, match=r"no pattern does: .*does not apply"):
        choose_pattern(module, ("fused",))


def test_a_graph_makes_launches_cheap():
    eager, graph = (choose_pattern(bsp(), graph=graph) for graph in (False, True))
    for candidate, taxes in graph.costs.items():
        assert taxes.launch < eager.costs[candidate].launch


def test_one_kernel_that_sends_and_reads_saves_a_launch():
    choice = choose_pattern(bsp(), ("push", "fused"))
    assert choice.best.pattern == "fused"
    assert choice.costs[choice.best].launch == pytest.approx(6e-6)
