"""One signal for several values: merged, lowered, proven, and priced."""

import re
from functools import cache

import pytest
from covering import one_of
from paths import ROOT
from rank_plans import program_cost
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.program import launch_plan_of
from comet.cost.gpu.launch_plan import Launch
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import FlagsOp, KernelOp, ProgramOp, SignalOp, WaitOp
from comet.dialects.dataflow.signals import cuts

TWO = """
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
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
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %other = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %other writers 1 : !CH -> !F
      dataflow.kernel @send ins(%x1, %box, %other, %flags : !L, !CH, !CH, !F) {
      ^bb0(%x2: !L, %box1: !CH, %other1: !CH, %f: !F):
        %e = dataflow.epoch
        %t, %u = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L, !L) {
        ^bb0(%t0: !T):
          schedule.yield %t0, %t0 : !T, !T
        }
        dataflow.push %t to %box1 epoch %e : !L, !CH
        dataflow.push %u to %other1 epoch %e : !L, !CH
        dataflow.signal %other1 covers(%box1 : !CH) flags %f epoch %e release system
            fence : !CH, !F
        dataflow.yield
      }
      %b = dataflow.buffer : !O
      %y = dataflow.kernel @sum ins(%box, %flags : !CH, !F) outs(%b : !O)
          sources ["K"] {
      ^bb0(%box1: !CH, %f: !F):
        %e = dataflow.epoch
        dataflow.wait %box1 flags %f epoch %e acquire system arrivals 1 : !CH, !F
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
"""The signal on %other covers %box: the same programs store to both."""
PUSH = "        dataflow.push %t to %box1 epoch %e : !L, !CH\n"
SIGNAL = (
    "        dataflow.signal %other1 covers(%box1 : !CH) flags %f epoch %e release "
    "system\n            fence : !CH, !F\n"
)
NODE = """        %v = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
"""


def edited(*edits: tuple[str, str]) -> str:
    """Return the right program after edits, each of which has to change it once."""
    text = TWO
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


BROKEN = {
    "a signal before the last value": edited((PUSH, ""), (SIGNAL, SIGNAL + PUSH)),
    "a value of other programs": edited((PUSH, NODE + PUSH.replace("%t", "%v"))),
}


def test_a_signal_behind_both_tells_of_both():
    module = parse_module(TWO)
    assert str(run_passes(module, "verify-sync")) == str(module)


@pytest.mark.parametrize("name", BROKEN)
def test_it_speaks_for_nothing_else(name: str):
    reason = "@send covers %box by the signal of %other, before which its programs"
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        run_passes(parse_module(BROKEN[name]), "verify-sync")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" fence", "", "@send signals %box without a fence"),
        ("arrivals 1", "arrivals 2", "@sum waits for 2 of the 1 tiles of a block of %"),
        ("acquire", "relaxed", "dataflow.wait on %box that is relaxed"),
        ("release system", "release gpu", "dataflow.signal on %box of scope gpu"),
        (SIGNAL, SIGNAL + SIGNAL, "@send signals a tile of %box twice"),
    ],
)
def test_what_holds_of_own_flags_holds_of_shared_ones(old: str, new: str, reason: str):
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        run_passes(parse_module(edited((old, new))), "verify-sync")


def test_blocks_are_along_what_both_have():
    sent, whole = (f"tensor<4x{k}xf32, #compound.dims<M, K>>" for k in (8, 16))
    line = 'slots 2 on @gpus ["rank"] : !dataflow.channel<push gather K'
    text = f"""
    collective.mesh @gpus {{rank = 2}}
    %0 = dataflow.receive_buffer {line} : {sent} -> {whole}>
    %1 = dataflow.receive_buffer {line}
        : {sent.replace("M", "N")} -> {whole.replace("M", "N")}>
    %2 = dataflow.flags for %0 writers 1 : !dataflow.channel<push gather K
        : {sent} -> {whole}> -> !dataflow.flags<2, [M = 2]>
    """
    _, one, other, flags = parse_module(text).ops
    assert isinstance(flags, FlagsOp)
    assert cuts(flags, one.results[0])
    assert not cuts(flags, other.results[0])


LOWERED = (
    (
        r"(%box|%other) = dataflow.receive_buffer .*",
        r"\1 = dataflow.channel on @gpus "
        r'["rank"] blocks [M = 2] : !CH',
    ),
    (r" *(%flags = dataflow.flags|%e = dataflow.epoch).*\n", ""),
    (r" flags %f| epoch %e|, %flags|, %f: !F|, !F(?=[ ){]|$)", ""),
    (r" release system( fence)?| acquire system arrivals 1", ""),
)
"""What `lower-channels` adds to a program, and what is there before."""


def unlowered(text: str) -> str:
    """Return a program as it is before `lower-channels`."""
    for added, before in LOWERED:
        text = re.sub(added, before, text, flags=re.M)
    return text


def test_a_kernel_takes_the_flags_that_tell_it():
    module = run_passes(parse_module(unlowered(TWO)), "lower-channels,verify-sync")
    (flags,) = (op for op in module.walk() if isinstance(op, FlagsOp))
    _, reader = (op for op in module.walk() if isinstance(op, KernelOp))
    assert flags.result in reader.ins
    assert flags.buffer not in reader.ins


def test_a_signal_that_says_nothing_of_a_channel_does_not_speak_for_it():
    text = edited((" covers(%box1 : !CH)", ""))
    reason = "@sum uses %flags, the flags of %other, for %box; give each receive buffer"
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        run_passes(parse_module(text), "verify-sync")
    with pytest.raises(PassFailedException, match="waits without a signal"):
        run_passes(parse_module(unlowered(text)), "lower-channels")


def test_what_a_signal_covers_is_verified_after_lowering_too():
    for text in BROKEN.values():
        with pytest.raises(PassFailedException, match="covers %box_recv by the"):
            run_passes(parse_module(unlowered(text)), "lower-channels,verify-sync")


@cache
def connected(pattern: str) -> ModuleOp:
    """Return flash decode on four ranks, with channels."""
    text = (ROOT / "samples/flash_decode.mlir").read_text()
    hardware = ROOT / "samples/hardware/mi300x8.yaml"
    passes = (
        f'attach-hardware{{path="{hardware}"}},select-ranks{{ranks=4}},decompose,stream,'
        "insert-collectives,place-collectives,lower-reductions,fuse{strategy=auto},tile,"
        f"outline-kernels,bsp-to-dataflow{{pattern={pattern}}}"
    )
    return run_passes(parse_module(text), passes)


def lowered(pattern: str) -> ModuleOp:
    return run_passes(connected(pattern), "lower-channels,verify-sync")


def count(module: ModuleOp, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


@one_of(2)
@pytest.mark.parametrize("pattern", ["fused", "pull"])
def test_flash_decode_signals_once_for_its_three_values(pattern: str):
    module = lowered(pattern)
    assert count(module, SignalOp) == count(module, FlagsOp) == 1
    (signal,) = (op for op in module.walk() if isinstance(op, SignalOp))
    assert len(signal.covered) == 2
    assert count(module, WaitOp) == 3
    placed = run_passes(module, "materialize-copies,hoist-copies,place-waits")
    assert count(placed, WaitOp) == 1
    emitted = str(run_passes(placed, "lower-to-triton"))
    assert emitted.count("tl.wait_all ") == emitted.count("tl.signal") == 1


def test_kernels_of_their_own_signal_each():
    module = lowered("push")
    assert count(module, SignalOp) == count(module, FlagsOp) == 3


@one_of(2)
@pytest.mark.parametrize("pattern", ["fused", "pull"])
def test_flags_of_several_values_are_looked_at_once(pattern: str):
    before, after = connected(pattern), lowered(pattern)
    system = attached_system(after)
    plans = [
        next(op for op in module.walk() if isinstance(op, ProgramOp))
        for module in (before, after)
    ]
    assert program_cost(plans[0], system) == program_cost(plans[1], system)
    plan = launch_plan_of(plans[1], system)
    (consumer,) = (step for step in plan[1:] if isinstance(step, Launch))
    receives = consumer.nodes[0].receives
    assert len(receives) == 3
    assert len({receive.channel for receive in receives}) == 1
