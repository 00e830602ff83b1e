"""What a node of a persistent kernel may read of another one: what flags order."""

import pytest
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import (
    KernelOp,
    ProgramOp,
    SignalOp,
    WaitOp,
)
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow.kernels import joined

TEXT = """
!X = tensor<8x16xf32, #compound.dims<M, K @HBM>>
!K = tensor<16xf32, #compound.dims<K @HBM>>
!L = tensor<8x2xf32, #compound.dims<M, K @HBM>>
!C = tensor<2xf32, #compound.dims<K @HBM>>
!S = tensor<8xf32, #compound.dims<M @HBM>>
!G = tensor<8x8xf32, #compound.dims<R, M @HBM>>
!xt = tensor<2x2xf32, #compound.dims<M, K @REG>>
!ct = tensor<2xf32, #compound.dims<K @REG>>
!st = tensor<2xf32, #compound.dims<M @REG>>
!gt = tensor<8x2xf32, #compound.dims<R, M @REG>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !X, %c: !K) -> !X {
  %all = collective.spmd on @h200x8 ins(%x, %c : !X, !K)
      sharded [{K = ["rank"]}, {K = ["rank"]}] outs(!X) sharded [{K = ["rank"]}] {
  ^bb0(%l: !L, %k: !C):
    %r = dataflow.program ins(%l, %k : !L, !C) {
    ^bb0(%x1: !L, %k1: !C):
      %rows = dataflow.buffer : !L
      %sums = dataflow.buffer : !S
      %columns = dataflow.buffer : !C
      %e, %s, %w = dataflow.kernel @make ins(%x1, %k1 : !L, !C)
          outs(%rows, %sums, %columns : !L, !S, !C) {
      ^bb0(%x2: !L, %k2: !C):
        %n, %m, %v = schedule.spatial on grid [g0: M = 4] ins(%x2, %k2 : !L, !C)
            outs(!L, !S, !C) combine ["none", "none", "same"] {
        ^bb0(%t: !xt, %u: !ct):
          %y = compound.map exp %t : !xt -> !xt
          %z = compound.reduce add %y : !xt -> !st
          %a = compound.map exp %u : !ct -> !ct
          schedule.yield %y, %z, %a : !xt, !st, !ct
        }
        dataflow.yield %n, %m, %v : !L, !S, !C
      } -> !L, !S, !C
      dataflow.barrier
      %parts = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%s : !S) outs(%parts : !G) {
      ^bb0(%s1: !S):
        %y = collective.all_gather "R" %s1 on @h200x8 ["rank"] : !S -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.barrier
      %out = dataflow.buffer : !L
      %d = dataflow.kernel @last ins(%READ, %g : TYPE, !G) outs(%out : !L) {
      ^bb0(%e1: TYPE, %g1: !G):
        %n = schedule.spatial on grid [g0: M = 4] ins(%e1, %g1 : TYPE, !G) outs(!L) {
        ^bb0(%t: TILE, %u: !gt):
          %v = compound.reduce add %u : !gt -> !st
          %y = compound.map div %t, %v : TILE, !st -> !xt
          schedule.yield %y : !xt
        }
        dataflow.yield %n : !L
      } -> !L
      dataflow.yield %d : !L
    } -> !L
    collective.yield %r : !L
  }
  func.return %all : !X
}
"""
"""Row sums over all ranks divide what the kernel before has made of rows or columns."""

EDITS = {"e": ("!L", "!xt"), "w": ("!C", "!ct")}


def program(read: str) -> ModuleOp:
    """Return the program of which the last kernel reads `read`."""
    type_, tile = EDITS[read]
    text = TEXT.replace("READ", read).replace("TYPE", type_).replace("TILE", tile)
    return run_passes(parse_module(text), hardware("h200x8.yaml"))


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


PERSISTENT = "bsp-to-dataflow{pattern=fused persistent=true}"


@pytest.mark.parametrize(("read", "count"), [("e", 1), ("w", 2)])
def test_rows_are_signalled_and_columns_are_not(read: str, count: int):
    before = program(read)
    after = run_passes(before, PERSISTENT)
    assert len(kernels(after)) == count
    lowered = run_passes(after, "lower-channels,verify-sync")
    assert_same_meaning(before, lowered, "f")


PLACED = "lower-channels,materialize-copies,hoist-copies,place-waits"


def test_a_node_first_waits_for_what_another_makes():
    before = program("e")
    module = run_passes(before, f"{PERSISTENT},{PLACED}")
    assert_same_meaning(before, module, "f")
    (own,) = (op for op in module.walk() if isinstance(op, WaitOp) and op.own)
    assert isinstance(node := own.parent_op(), SpatialOp)
    assert own.prev_op is None
    assert list(own.views) == [node.tiles[0]]
    assert str(run_passes(module, "verify-sync")) == str(module)
    own.awaited[0].replace_all_uses_with(own.views[0])
    reason = "@last reads %n that other programs of the same launch make"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


def test_a_signal_covers_what_the_own_rank_reads():
    module = run_passes(program("e"), f"{PERSISTENT},{PLACED}")
    (signal,) = (op for op in module.walk() if isinstance(op, SignalOp))
    node = signal.parent_op()
    assert isinstance(node, SpatialOp)
    sent, local = signal.covered
    assert local is node.yielded[0]
    assert sent is node.yielded[1]
    less = SignalOp(signal.channel, signal.flags, signal.epoch, covered=[sent])
    Rewriter.replace_op(signal, less)
    reason = "@last reads %n that other programs of the same launch make"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


def test_a_kernel_that_reads_what_nothing_signals_is_rejected():
    module = run_passes(program("w"), "bsp-to-dataflow{pattern=fused}")
    make, last = kernels(module)
    (whole,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    joined(make, last)
    assert len(list(whole.kernels())) == 1
    reason = "verify-sync: @last reads %v that other programs of the same launch make"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "lower-channels,verify-sync")


PARTS = """
!X = tensor<8x16xf32, #compound.dims<M, K @HBM>>
!L = tensor<8x2xf32, #compound.dims<M, K @HBM>>
!J = tensor<2xf32, #compound.dims<J @HBM>>
!S = tensor<8xf32, #compound.dims<M @HBM>>
!P = tensor<8x1xf32, #compound.dims<R, M @HBM>>
!O = tensor<1xf32, #compound.dims<M @HBM>>
!A = tensor<1x2xf32, #compound.dims<M, J @HBM>>
!B = tensor<8x2xf32, #compound.dims<M, J @HBM>>
!xt = tensor<1x2xf32, #compound.dims<M, K @REG>>
!jt = tensor<2xf32, #compound.dims<J @REG>>
!st = tensor<1xf32, #compound.dims<M @REG>>
!pt = tensor<8x1xf32, #compound.dims<R, M @REG>>
!at = tensor<1x2xf32, #compound.dims<M, J @REG>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !X, %c: !J) -> !B {
  %all = collective.spmd on @h200x8 ins(%x, %c : !X, !J) sharded [{K = ["rank"]}, {}]
      outs(!B) sharded [{M = ["rank"]}] {
  ^bb0(%l: !L, %k: !J):
    %r = dataflow.program ins(%l, %k : !L, !J) {
    ^bb0(%x1: !L, %k1: !J):
      %sums = dataflow.buffer : !S
      %others = dataflow.buffer : !J
      %s, %w = dataflow.kernel @make ins(%x1, %k1 : !L, !J)
          outs(%sums, %others : !S, !J) {
      ^bb0(%x2: !L, %k2: !J):
        %m, %v = schedule.spatial on grid [g0: M = 8] ins(%x2, %k2 : !L, !J)
            outs(!S, !J) combine ["none", "same"] {
        ^bb0(%t: !xt, %u: !jt):
          %z = compound.reduce add %t : !xt -> !st
          %a = compound.map exp %u : !jt -> !jt
          schedule.yield %z, %a : !st, !jt
        }
        dataflow.yield %m, %v : !S, !J
      } -> !S, !J
      dataflow.barrier
      %parts = dataflow.buffer : !P
      %g = dataflow.kernel @exchange ins(%s : !S) outs(%parts : !P) {
      ^bb0(%s1: !S):
        %y = collective.all_to_all split "M" concat "R" %s1 on @h200x8 ["rank"]
            : !S -> !P
        dataflow.yield %y : !P
      } -> !P
      dataflow.barrier
      %out = dataflow.buffer : !A
      %d = dataflow.kernel @last ins(%w, %g : !J, !P) outs(%out : !A) {
      ^bb0(%w1: !J, %g1: !P):
        %n = schedule.spatial on grid [] ins(%w1, %g1 : !J, !P) outs(!A) {
        ^bb0(%t: !jt, %u: !pt):
          %v = compound.reduce add %u : !pt -> !st
          %y = compound.map mult %v, %t : !st, !jt -> !at
          schedule.yield %y : !at
        }
        dataflow.yield %n : !A
      } -> !A
      dataflow.yield %d : !A
    } -> !A
    collective.yield %r : !A
  }
  func.return %all : !B
}
"""
"""The value that stays is stored by one program, which signals one rank only."""


def test_a_rank_that_gets_a_part_has_no_signal_for_the_rest():
    before = run_passes(parse_module(PARTS), hardware("h200x8.yaml"))
    after = run_passes(before, PERSISTENT)
    assert len(kernels(after)) == 2
    lowered = run_passes(after, "lower-channels,verify-sync")
    assert_same_meaning(before, lowered, "f")
