"""The passes from collectives to flags: programs mean the same after each of them."""

import re
from functools import cache

import pytest
from covering import covering, exhaustive, fraction, one_of
from gpu_ranks import H200X8, SHARED_TEXTS, TEXTS, on_ranks, sharded
from rank_plans import gathered
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.dataflow import (
    BarrierOp,
    ChannelOp,
    KernelOp,
    PushOp,
    ReceiveBufferOp,
    SignalOp,
    WaitOp,
)
from comet.dialects.schedule import SpatialOp

PATTERNS = ("bsp", "wait", "pull", "push", "fused")
SIZES = {"M": 13, "N": 21, "K": 10}
LOWER = "fuse{strategy=full},tile,outline-kernels"
OPTIONS = (*PATTERNS, "fused persistent=true")
INPUTS = ("ag_gemm", "ag_gemm_rows", "ring_attention", "expert_gemm")
"""What sends inputs only, which no kernel makes."""
CASES = covering(
    (
        (name, option, ranks)
        for name, option in fraction((*TEXTS, *SHARED_TEXTS), OPTIONS, 3)
        for ranks in (1, 2, 3, 8)
        if ranks > 1 or name in TEXTS
    ),
    paired=2,
)


@cache
def bsp(name: str, ranks: int) -> ModuleOp:
    """Return a program of kernels, collectives and barriers."""
    passes = sharded(ranks, "N") if name in TEXTS else on_ranks(ranks)
    text = {**TEXTS, **SHARED_TEXTS}[name].format(**SIZES)
    return run_passes(parse_module(text), f"{passes},{LOWER}")


@one_of(6)
@pytest.mark.parametrize(("name", "option", "ranks"), CASES)
def test_channels_mean_what_collectives_did(name: str, option: str, ranks: int):
    before = bsp(name, ranks)
    after = run_passes(before, f"bsp-to-dataflow{{pattern={option}}}")
    assert not any(isinstance(op, CollectiveOp) for op in after.walk())
    assert_same_meaning(before, after, "f")
    lowered = run_passes(after, "lower-channels,verify-sync")
    assert not any(isinstance(op, ChannelOp) for op in lowered.walk())
    assert_same_meaning(before, lowered, "f")


@pytest.mark.parametrize("name", INPUTS)
def test_the_kernel_that_reads_an_input_sends_it(name: str):
    after = run_passes(bsp(name, 2), "bsp-to-dataflow{pattern=fused}")
    (kernel,) = kernels(after)
    *sent, reads = (op for op in kernel.body.block.ops if isinstance(op, SpatialOp))
    assert len(sent) == (2 if name == "ring_attention" else 1)
    first = next(op for op in kernel.body.block.ops if isinstance(op, WaitOp))
    assert all(node.is_before_in_block(first) for node in sent)
    assert first.is_before_in_block(reads)


@one_of(3)
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=exhaustive)])
@pytest.mark.parametrize("name", [*TEXTS, *SHARED_TEXTS])
def test_a_persistent_kernel_makes_sends_and_reads(name: str, ranks: int):
    after = run_passes(
        bsp(name, ranks), "bsp-to-dataflow{pattern=fused persistent=true}"
    )
    (kernel,) = kernels(after)
    given = [op.channel for op in kernel.walk() if isinstance(op, PushOp)]
    awaited = [op.channel for op in kernel.walk() if isinstance(op, WaitOp)]
    assert set(given) == set(awaited)
    assert not any(isinstance(op, BarrierOp) for op in after.walk())


def kernels(module: ModuleOp) -> list[KernelOp]:
    """Return the kernels of a module, in launch order."""
    return [op for op in module.walk() if isinstance(op, KernelOp)]


@one_of(2)
@pytest.mark.parametrize("name", SHARED_TEXTS)
def test_one_device_needs_no_channel(name: str):
    before = bsp(name, 1)
    after = run_passes(before, f"bsp-to-dataflow{{pattern={OPTIONS[-1]}}}")
    assert str(after) == str(before)


def test_only_bsp_keeps_barriers_of_all_ranks():
    for pattern in PATTERNS:
        after = run_passes(
            bsp("gemm_all_reduce", 4), f"bsp-to-dataflow{{pattern={pattern}}}"
        )
        barriers = [op for op in after.walk() if isinstance(op, BarrierOp)]
        signals = [op for op in after.walk() if isinstance(op, SignalOp)]
        assert any(op.local is None for op in barriers) == (pattern == "bsp")
        assert bool(signals) == (pattern != "bsp")


def test_fused_has_fewer_kernels():
    before = bsp("gemm_all_reduce", 4)
    counts = {
        option: len(kernels(run_passes(before, f"bsp-to-dataflow{{pattern={option}}}")))
        for option in ("push", "fused", "pull", OPTIONS[-1])
    }
    assert counts == {"push": 3, "fused": 2, "pull": 2, OPTIONS[-1]: 1}


def test_receive_buffers_have_a_slot_for_the_rank_that_is_ahead():
    after = run_passes(bsp("ag_gemm", 4), "bsp-to-dataflow,lower-channels")
    (receive_buffer,) = (op for op in after.walk() if isinstance(op, ReceiveBufferOp))
    assert receive_buffer.slots.value.data == 2


@pytest.mark.parametrize("rows", [1, 2])
def test_kernels_tell_a_shard_from_the_whole_by_what_is_moved(rows: int):
    type_ = f"tensor<{rows}x8xf32, #compound.dims<M, K @HBM>>"
    text = f"""
    func.func @f(%a: {type_} {{collective.shard = {{K = ["rank"]}}}})
        -> ({type_} {{collective.shard = {{M = ["rank"]}}}}) {{
      %b = compound.map exp %a {{collective.shard = {{K = ["rank"]}}}} :
          {type_} -> {type_}
      func.return %b : {type_}
    }}"""
    passes = f"{on_ranks(4)},{LOWER},bsp-to-dataflow{{pattern=push}}"
    after = run_passes(parse_module(text), passes)
    shards = {k.sym_name.data: k.shard_extents for k in kernels(after)}
    assert shards == {
        "f_b_kernel": {},
        "f_exchange_b_kernel": {},
        "f_exchange_b_kernel_land": {"M": rows},
    }


@pytest.mark.parametrize(
    ("depth", "shards"),
    [
        (1, {"f_gather_a_kernel": {"K": 1}, "f_c_kernel": {}}),
        (2, {"f_c_kernel": {"K": 2}}),
    ],
)
def test_a_reader_sends_no_shard_that_looks_whole(
    depth: int, shards: dict[str, dict[str, int]]
):
    text = SHARED_TEXTS["ag_gemm"].format(M=4, N=8, K=depth)
    before = run_passes(parse_module(text), f"{on_ranks(4)},{LOWER}")
    after = run_passes(before, "bsp-to-dataflow{pattern=fused}")
    assert {k.sym_name.data: k.shard_extents for k in kernels(after)} == shards


PROGRAM = """
!L = tensor<8x8xf32, #compound.dims<M, K @HBM>>
!V = tensor<8x8xf32, #compound.dims<N, K @HBM>>
!G = tensor<8x64xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
!W = tensor<2x64xf32, #compound.dims<M, K @REG>>
!Q = tensor<8x64xf32, #compound.dims<N, K @HBM>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !G) -> (!G, !G) {
  %all, %more = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}]
      outs(!G, !G) sharded [{}, {}] {
  ^bb0(%l: !L):
    %r, %s = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      KERNELS
      dataflow.yield %g, %h : !G, !G
    } -> !G, !G
    collective.yield %r, %s : !G, !G
  }
  func.return %all, %more : !G, !G
}
""".replace("KERNELS", gathered(4))


def transformed(text: str, options: str) -> ModuleOp:
    """Return a program in text after the pass."""
    module = parse_module(text)
    return run_passes(module, f"{H200X8},bsp-to-dataflow{{{options}}}")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_gathered_may_be_a_result_too(pattern: str):
    before = parse_module(PROGRAM)
    after = transformed(PROGRAM, f"pattern={pattern}")
    assert "gather_land" in [op.sym_name.data for op in kernels(after)]
    assert_same_meaning(before, after, "f")
    lowered = run_passes(after, "lower-channels,verify-sync")
    assert_same_meaning(before, lowered, "f")


@pytest.mark.parametrize("pattern", ["fused", "pull"])
def test_what_is_sent_may_have_other_readers(pattern: str):
    text = PROGRAM.replace("yield %g, %h : !G, !G", "yield %e, %h : !L, !G")
    text = text.replace("} -> !G, !G\n    collective.yield %r, %s : !G, !G", "LEFT")
    text = text.replace("LEFT", "} -> !L, !G\n    collective.yield %r, %s : !L, !G")
    text = text.replace("sharded [{}, {}]", 'sharded [{K = ["rank"]}, {}]')
    before, after = parse_module(text), transformed(text, f"pattern={pattern}")
    assert_same_meaning(before, after, "f")


def edited(*edits: tuple[str, str]) -> str:
    """Return the program after edits, each of which changes it."""
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


NOT_FUSED = {
    "forwards what it has not made on its grid": edited(
        ("dataflow.yield %n : !L", "dataflow.yield %x2 : !L")
    ),
    "takes it under other dimension names": edited(
        ("%whole = dataflow.buffer : !G", "%whole = dataflow.buffer : !Q"),
        ("outs(%whole : !G)", "outs(%whole : !Q)"),
        (
            '%y = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G\n'
            "        dataflow.yield %y : !G\n      } -> !G",
            "%v = compound.rename %e1 : !L -> !V\n"
            '%y = collective.all_gather "K" %v on @h200x8 ["rank"] : !V -> !Q\n'
            "        dataflow.yield %y : !Q\n      } -> !Q",
        ),
        (
            "ins(%g : !G) outs(%buffer : !G) {\n      ^bb0(%g1: !G):\n",
            "ins(%g : !Q) outs(%buffer : !G) {\n      ^bb0(%q: !Q):\n"
            "        %g1 = compound.rename %q : !Q -> !G\n",
        ),
        ("yield %g, %h : !G, !G", "yield %h, %h : !G, !G"),
    ),
}


@pytest.mark.parametrize("reason", NOT_FUSED)
def test_a_producer_that_cannot_send_is_named(reason: str):
    before = parse_module(NOT_FUSED[reason])
    with pytest.raises(PassFailedException, match=f"does not apply .*{reason}"):
        transformed(NOT_FUSED[reason], "pattern=fused")
    for pattern in ("bsp", "wait", "pull", "push"):
        after = transformed(NOT_FUSED[reason], f"pattern={pattern}")
        assert_same_meaning(before, after, "f")


def test_blocks_are_cut_as_asked():
    after = transformed(PROGRAM, 'pattern=push blocks="gather: M=2 K=4"')
    (channel,) = (op for op in after.walk() if isinstance(op, ChannelOp))
    assert "blocks [M = 2]" in str(channel)
    assert "[g0: M = 2, g1: K = 4]" in str(after)


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ("N=2", "blocks cuts N, which nothing that is sent has; there are K, M"),
        ("sum: M=2", "blocks is for @sum, which is no collective of the program"),
        ("M=3", "M, of extent 8, into 3 tiles of a power of two; choose M=4"),
        ("M=5", "M, of extent 8, into 5 tiles of a power of two; choose M=4"),
        ("M=9", "M, of extent 8, into 9 tiles of a power of two; choose M=8"),
        ("M=0", "'M=0' in plan entry"),
    ],
)
def test_blocks_that_do_not_fit(blocks: str, reason: str):
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        transformed(PROGRAM, f'pattern=push blocks="{blocks}"')


def test_what_a_program_sends_fits_its_registers():
    text = SHARED_TEXTS["ag_gemm"].format(M=512, N=8, K=1024)
    plan = run_passes(parse_module(text), f"{on_ranks(2)},{LOWER}")
    run_passes(plan, 'bsp-to-dataflow{pattern=push blocks="M=8 K=1"}')
    reason = "tiles of M=512 x K=512 to send, 524288 bytes; registers hold"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(plan, 'bsp-to-dataflow{pattern=push blocks="M=1 K=1"}')


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            "pattern=push persistent=true",
            "persistent does not apply to pattern=push, in which no kernel sends what "
            "it makes; fused and auto apply",
        ),
        (
            'pattern=push tiles="gather: M=2"',
            "tiles are for @gather, which is no kernel that computes; there are @make, "
            "@twice",
        ),
        (
            'pattern=push tiles="twice: N=2"',
            "tiles cut N, over which @twice does not loop; it does over M",
        ),
    ],
)
def test_options_that_do_not_fit(options: str, reason: str):
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        transformed(PROGRAM, options)


@pytest.mark.parametrize(
    "tiles", ["make: M=4; twice: M=8", "make: BLOCK_M=4; twice: BLOCK_M=8"]
)
def test_tiles_of_kernels_are_those_asked_for(tiles: str):
    before = parse_module(PROGRAM)
    after = transformed(PROGRAM, f'pattern=wait tiles="{tiles}"')
    grids = [op for op in after.walk() if isinstance(op, SpatialOp)]
    rows = {op.parent_op(): [row.factor for row in op.loops] for op in grids}
    named = {k.sym_name.data: rows[k] for k in kernels(after)}
    assert named["make"] == [2]
    assert named["twice"] == [1]
    assert_same_meaning(before, after, "f")


def test_a_collective_that_computes_is_rejected():
    text = edited(
        (
            "dataflow.yield %y : !G",
            "%z = compound.map exp %y : !G -> !G\n        dataflow.yield %z : !G",
        )
    )
    reason = "does not apply to @gather: it changes what it gathers; do that in"
    with pytest.raises(PassFailedException, match=reason):
        transformed(text, "pattern=push")
