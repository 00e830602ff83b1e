"""Groups of programs in the IR: their meaning, and what cannot be one."""

from functools import cache

import pytest
from covering import fraction, one_of
from gpu_ranks import H200X8
from group_programs import GROUP_TEXTS, H200, SIZES
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.tiling import kernel_work
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.dataflow import PushOp
from comet.dialects.schedule import SpatialOp

SPMD = (
    "decompose{{accumulator=f32}},stream{{counts=false}},distribute{{dim=N axes=cta}},"
    "insert-collectives,place-collectives{{at=SMEM}},lower-reductions"
)
KERNELS = "fuse{strategy=full},tile,outline-kernels"
CHANNELS = "connect-programs,lower-channels"
LEVELS = {
    "kernels": KERNELS,
    "channels": f"{KERNELS},connect-programs",
    "flags": f"{KERNELS},{CHANNELS}",
    "copies": f"{KERNELS},{CHANNELS},materialize-copies,hoist-copies,verify-sync",
}


def elementary(name: str) -> ModuleOp:
    """Return a function on named dimensions."""
    module = parse_module(GROUP_TEXTS[name].format(**SIZES))
    return run_passes(module, f"{H200},decompose{{accumulator=f32}}")


def grouped(name: str, ctas: int, passes: str) -> ModuleOp:
    """Return a function whose programs exchange, after more passes."""
    module = parse_module(GROUP_TEXTS[name].format(**SIZES))
    return run_passes(
        module, f"{H200},add-ctas{{ctas={ctas}}},{SPMD.format()},{passes}"
    )


def grouped_on_ranks(name: str, ranks: int, ctas: int, passes: str) -> ModuleOp:
    """The same on several ranks, which share the rows, too."""
    module = parse_module(GROUP_TEXTS[name].format(**SIZES))
    spmd = SPMD.format().replace("axes=cta", "axes=rank,cta")
    start = f"{H200X8},select-ranks{{ranks={ranks}}},add-ctas{{ctas={ctas}}}"
    return run_passes(module, f"{start},{spmd},{passes}")


@one_of(4)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("name", "ctas"), [("softmax", 3), ("layernorm", 2), ("masked", 3)]
)
def test_programs_that_exchange_compute_the_same(name: str, ctas: int, level: str):
    assert_same_meaning(elementary(name), grouped(name, ctas, LEVELS[level]), "f")


ON_RANKS = [("softmax", 2, 3), ("layernorm", 2, 2), ("softmax", 4, 2), ("masked", 2, 2)]


@one_of(3)
@pytest.mark.parametrize(("case", "level"), fraction(ON_RANKS, [*LEVELS]))
def test_groups_on_ranks_compute_the_same(case: tuple[str, int, int], level: str):
    name, ranks, ctas = case
    after = grouped_on_ranks(name, ranks, ctas, LEVELS[level])
    assert_same_meaning(elementary(name), after, "f")


def test_turns_compute_the_same():
    plan = f"{KERNELS},{CHANNELS}".replace("tile,", 'tile{factors="p: M=2; p_m: M=2"},')
    after = grouped("softmax", 3, plan)
    assert_same_meaning(elementary("softmax"), after, "f")


@cache
def lowered() -> str:
    """Return the text of a program with flags, which `verify-sync` accepts."""
    module = grouped("softmax", 3, LEVELS["flags"])
    run_passes(module, "verify-sync")
    return str(module)


def test_a_program_with_flags_is_accepted():
    assert "coresident 3" in lowered()


EDITS = [
    ("coresident 3 ", "", "has 3 programs that wait for each other, and says that 0"),
    ("coresident 3 ", "coresident 2 ", "write coresident 3"),
    ("arrivals 3", "arrivals 2", "waits for 2 of the 3 tiles"),
    ("writers 3", "writers 2", "count 2 writers"),
    ("release gpu", "relaxed gpu", "is relaxed: its stores may move past it"),
    ("acquire gpu", "relaxed gpu", "is relaxed: its loads may move past it"),
    (" fence", "", "without a fence"),
]


@one_of(2)
@pytest.mark.parametrize(("old", "new", "reason"), EDITS)
def test_what_could_wait_for_ever_or_race_is_rejected(old: str, new: str, reason: str):
    assert old in lowered()
    module = parse_module(lowered().replace(old, new))
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


@cache
def lowered_on_ranks() -> str:
    """Return the text of a program for two ranks with groups of three."""
    module = grouped_on_ranks("softmax", 2, 3, LEVELS["flags"])
    run_passes(module, "verify-sync")
    return str(module)


EDITS_ON_RANKS = [
    ("coresident 3 ", "coresident 6 ", "write coresident 3"),
    ("dataflow.push root", "dataflow.push", "one place and one signal for all; write"),
    ("signal root", "signal", "one place and one signal for all; write root"),
    ("dataflow.signal %", "dataflow.signal root %", "leave out root"),
    ("writers 1", "writers 3", "count 3 writers, but @f_kernel makes 1 tiles"),
    ("acquire system arrivals 1", "acquire system arrivals 2", "never ends"),
    ("release system fence", "release gpu fence", "other GPUs do not see in order"),
    ("acquire system", "acquire gpu", "other GPUs do not see in order"),
    ('slots 2 on @h200x8 ["rank"]', 'slots 1 on @h200x8 ["rank"]', "has one slot"),
]


@one_of(2)
@pytest.mark.parametrize(("old", "new", "reason"), EDITS_ON_RANKS)
def test_what_ranks_could_wait_for_or_race_is_rejected(old: str, new: str, reason: str):
    assert old in lowered_on_ranks()
    module = parse_module(lowered_on_ranks().replace(old, new))
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


def test_the_root_sends_what_all_programs_have():
    module = grouped_on_ranks("softmax", 2, 3, f"{KERNELS},connect-programs")
    root = next(op for op in module.walk() if isinstance(op, PushOp) and op.root)
    own = next(op for op in module.walk() if isinstance(op, PushOp) and not op.root)
    root.operands[0] = own.value
    with pytest.raises(VerifyException, match="a value that is partial"):
        module.verify()


def test_a_signal_that_is_gone_is_missed():
    lines = [line for line in lowered().splitlines() if "dataflow.signal" not in line]
    with pytest.raises(PassFailedException, match="nobody signals, for ever"):
        run_passes(parse_module("\n".join(lines)), "verify-sync")


def test_one_flag_for_all_rows_is_rejected():
    text = lowered()
    edited = text.replace("!dataflow.flags<1, [M = 3]>", "!dataflow.flags<1, []>")
    assert edited != text
    with pytest.raises(PassFailedException, match="cut blocks along M"):
        run_passes(parse_module(edited), "verify-sync")


def test_kernels_without_groups_have_no_coresident_programs():
    with pytest.raises(VerifyException, match="at least 2, not 1"):
        parse_module(lowered().replace("coresident 3 ", "coresident 1 "))


BY_HAND = ROOT / "tests/filecheck/dialects/dataflow/groups.mlir"
APART = """
        %top = schedule.temporal [M = 1] ins(%t : !T) with(%ch3, %fl3, %e3 : !CH, !FL, !E) outs(tensor<2xf32, #compound.dims<M @REG>>) {
        ^bb3(%t1: !T, %ch4: !CH, %fl4: !FL, %e4: !E):
          %w = dataflow.wait %ch4 for(%t1 : !T) flags %fl4 epoch %e4 acquire gpu arrivals 2 : !CH, !FL
          %l = schedule.copy %w : !T -> tensor<2x2xf32, #compound.dims<part, M @REG>>
          %u = compound.reduce max %l : tensor<2x2xf32, #compound.dims<part, M @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
          schedule.yield %u : tensor<2xf32, #compound.dims<M @REG>>
        }
        %d ="""  # noqa: E501
"""A wait in another body than the signal."""

TOTAL = """
!X = tensor<4x8xf32, #compound.dims<M, N @HBM>>
!R = tensor<2x4xf32, #compound.dims<M, N @REG>>
!V = tensor<f32, #compound.dims<@HBM>>
!S = tensor<f32, #compound.dims<@REG>>
!P = tensor<2xf32, #compound.dims<part @HBM>>
!CH = !dataflow.channel<push gather part : !V -> !P>
!FL = !dataflow.flags<1, []>
!E = !dataflow.epoch
collective.mesh @gpu {rank = 1, cta = 2} at {rank = "HBM", cta = "SMEM"}
func.func @f(%x: !X) -> !V {
  %r = dataflow.program ins(%x : !X) {
  ^bb0(%x1: !X):
    %ch = dataflow.receive_buffer slots 1 on @gpu ["cta"] : !CH
    %fl = dataflow.flags for %ch writers 2 : !CH -> !FL
    %b = dataflow.buffer : !V
    %y = dataflow.kernel @k ins(%x1, %ch, %fl : !X, !CH, !FL) outs(%b : !V) coresident 2 {
    ^bb0(%x2: !X, %ch1: !CH, %fl1: !FL):
      %e = dataflow.epoch
      %n = schedule.spatial @n on grid [g0: M = 2] ins(%x2 : !X) with(%ch1, %fl1, %e : !CH, !FL, !E) outs(!V) combine ["max"] {
      ^bb1(%x3: tensor<2x8xf32, #compound.dims<M, N @HBM>>, %ch2: !CH, %fl2: !FL, %e2: !E):
        %o = schedule.spatial @o on @gpu [cta: N = 2] ins(%x3 : tensor<2x8xf32, #compound.dims<M, N @HBM>>) with(%ch2, %fl2, %e2 : !CH, !FL, !E) outs(!V) combine ["same"] {
        ^bb2(%x4: tensor<2x4xf32, #compound.dims<M, N @HBM>>, %ch3: !CH, %fl3: !FL, %e3: !E):
          %c = schedule.copy %x4 : tensor<2x4xf32, #compound.dims<M, N @HBM>> -> !R
          %m = compound.reduce max %c : !R -> !S
          %s = dataflow.push %m to %ch3 epoch %e3 : !S, !CH -> !V
          dataflow.signal %ch3 covers(%s : !V) flags %fl3 epoch %e3 release gpu fence : !CH, !FL
          %t = dataflow.read_tile %ch3 of %s epoch %e3 : !CH, !V -> !P
          %w = dataflow.wait %ch3 for(%t : !P) flags %fl3 epoch %e3 acquire gpu arrivals 2 : !CH, !FL
          %l = schedule.copy %w : !P -> tensor<2xf32, #compound.dims<part @REG>>
          %top = compound.reduce max %l : tensor<2xf32, #compound.dims<part @REG>> -> !S
          %z = schedule.copy %top : !S -> !V
          schedule.yield %z : !V
        }
        schedule.yield %o : !V
      }
      dataflow.yield %n : !V
    } -> !V
    dataflow.yield %y : !V
  }  -> !V
  func.return %r : !V
}
"""  # noqa: E501
"""Statistics without rows, which groups for other rows would store to one place."""


def by_hand() -> str:
    """Return a program that was written by hand."""
    return BY_HAND.read_text()


def test_a_program_by_hand_is_accepted():
    run_passes(parse_module(by_hand()), "verify-sync")


def test_tiles_and_blocks_agree():
    edited = by_hand().replace("flags<1, [M = 2]>\n", "flags<1, [M = 4]>\n")
    with pytest.raises(PassFailedException, match="tiles of 2 along M where the flags"):
        run_passes(parse_module(edited), "verify-sync")


def test_tiles_have_places_of_their_own():
    with pytest.raises(PassFailedException, match="over M, which has no place there"):
        run_passes(parse_module(TOTAL), "verify-sync")


def test_programs_signal_and_wait_in_one_body():
    lines = by_hand().splitlines()
    kept = [line for line in lines if "%w =" not in line and "%l =" not in line]
    text = "\n".join(line for line in kept if "%top = " not in line)
    tile = "!T = tensor<2x2xf32, #compound.dims<part, M @HBM>>\n!E = "
    text = text.replace("        %d =", APART).replace("!E = ", tile, 1)
    with pytest.raises(PassFailedException, match="do all in one body"):
        run_passes(parse_module(text), "verify-sync")


def test_statistics_without_rows_are_rejected():
    passes = f"{H200},add-ctas{{ctas=2}},{SPMD.format()}".replace("{counts=false}", "")
    module = parse_module(GROUP_TEXTS["layernorm"].format(**SIZES))
    with pytest.raises(PassFailedException, match="exchange %n, which has no M"):
        run_passes(module, f"{passes},{KERNELS},connect-programs")


def test_every_program_has_a_part():
    with pytest.raises(
        PassFailedException, match="have no part of N = 43; use ctas=22"
    ):
        grouped("softmax", 32, KERNELS)


TWO_DIMS = """
!X = tensor<8x6xf16, #compound.dims<M, N>>
!Y = tensor<8x4xf16, #compound.dims<M, Q>>
func.func @f(%x: !X, %y: !Y) -> (!X, !Y) {
  %s = compound.map exp %x : !X -> !X
  %t = compound.map exp %y : !Y -> !Y
  func.return %s, %t : !X, !Y
}
"""


def test_programs_split_one_dimension():
    shards = "distribute{dim=N axes=cta},distribute{dim=Q axes=cta},insert-collectives"
    with pytest.raises(PassFailedException, match="and split N, Q; let them split one"):
        run_passes(parse_module(TWO_DIMS), f"{H200},add-ctas{{ctas=2}},{shards},fuse")


ALONE = """
!X = tensor<8x6xf16, #compound.dims<M, N>>
func.func @f(%x: !X) -> !X {
  %s = compound.map exp %x : !X -> !X
  func.return %s : !X
}
"""
WHOLE = """
!X = tensor<8x6xf16, #compound.dims<M, N>>
!R = tensor<8xf16, #compound.dims<M>>
func.func @f(%x: !X) -> !R {
  %r = compound.reduce max %x : !X -> !R
  func.return %r : !R
}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ALONE, "split N and have nothing to exchange, so they are no groups; compile"),
        (WHOLE, "%r has no N, so all programs of a group have all of it, and none a p"),
    ],
)
def test_programs_of_a_group_exchange_and_store_parts(text: str, reason: str):
    with pytest.raises(PassFailedException, match=reason):
        run_passes(parse_module(text), f"{H200},triton-distributed{{ctas=2}}")


@pytest.mark.parametrize("options", ['kernels="p"', "narrow=c"])
def test_programs_that_exchange_are_one_kernel(options: str):
    with pytest.raises(PassFailedException, match="exchange values in one kernel, and"):
        grouped("softmax", 2, f"fuse{{strategy=full {options}}}")


def test_ranks_exchange_what_programs_have_whole():
    module = parse_module(GROUP_TEXTS["layernorm"].format(**SIZES))
    options = 'ranks=2 ctas=2 dim="K:rank;N:cta"'
    with pytest.raises(PassFailedException, match="each program of a group has a part"):
        run_passes(module, f"{H200X8},triton-distributed{{{options}}}")


def test_the_programs_of_a_group_run_together():
    module = grouped("softmax", 3, "fuse{strategy=full},tile")
    (node,) = (op for op in module.walk() if isinstance(op, SpatialOp) and op.is_grid)
    system = attached_system(module)
    gpu = device_of(system)
    assert node.launch is not None
    summary = summarize(node, gpu_levels(system), gpu)
    numbers = launch_numbers(node.launch)
    assert kernel_work(summary, tile_blocks(node), numbers, gpu).together == 3


def test_options_of_groups():
    module = parse_module(GROUP_TEXTS["softmax"].format(**SIZES))
    for options, reason in (
        ("ctas=0", "a number of programs or auto, not 0; use ctas=1"),
        ("ctas=2 dim=M,N", 'use dim="M:cta"'),
        ('ranks=2 ctas=2 dim="M:rank,cta;N:cta"', "names the axis cta twice"),
        ('ranks=2 ctas=2 dim="N:rank"', 'use dim="N:rank,cta"'),
    ):
        with pytest.raises(PassFailedException, match=reason):
            run_passes(module, f"{H200X8},triton-distributed{{{options}}}")
