"""`tile` and its plan string: what a plan means, and every mistake in one."""

import re

import pytest
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.schedule import TemporalOp
from comet.passes.functions import compute_functions
from comet.passes.plan_string import PLAN, PlanEntry, format_plan, parse_plan

EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"}'
FUSED = (
    f"{EDGE},decompose{{accumulator=input}},distribute{{dim=N axes=cx,cy,kx,ky}},"
    "insert-collectives,place-collectives{at=GB},fuse{strategy=full}"
)
SIZES = (24, 12, 64)


def test_a_plan_reads_as_it_prints():
    text = "DRAM: M=8; GB: M=4; OB/contract: N=2 K=8; OB/map: M=2"
    plan = parse_plan(text)
    assert plan[2] == PlanEntry("OB", "contract", (("N", 2), ("K", 8)))
    assert format_plan(plan) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DRAM", "plan entry 'DRAM' is not of the form LEVEL/KIND: DIM=FACTOR"),
        ("DRAM: M", "plan row 'M' of 'DRAM: M' is not of the form DIM=FACTOR"),
        ("DRAM: M=0", "with a positive factor"),
        ("DRAM: M=2 M=3", "names a row twice"),
    ],
)
def test_what_is_no_plan(text: str, message: str):
    with pytest.raises(PassFailedException, match=re.escape(message)):
        parse_plan(text)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("DRAM: M=5", "factor 5 of M does not divide its extent 24"),
        ("L2: M=2", "fits no node; there are nodes at DRAM, GB, OB"),
        ("OB/sqrt: M=2", "fits no node"),
        ("DRAM: Z=2", "names the unknown dimension Z"),
        ("GB: N=2", "is partial(max) over axis"),
    ],
)
def test_what_a_tree_cannot_take(plan: str, message: str):
    module = run_passes(parse_module(graph_text("gemm_softmax", SIZES)), FUSED)
    with pytest.raises(PassFailedException, match=re.escape(message)):
        run_passes(module, f'tile{{factors="{plan}"}}')


def test_a_tile_that_does_not_fit_names_level_tensor_and_bytes():
    module = run_passes(
        parse_module(graph_text("gemm_softmax", (4096, 512, 64))), FUSED
    )
    message = (
        "level GB needs 4341760 bytes and has 2097152; the largest tile is that of %a "
        "with 4194304 bytes"
    )
    with pytest.raises(PassFailedException, match=re.escape(message)):
        run_passes(module, 'tile{factors="OB/map: M=2"}')


def test_a_special_entry_wins_over_a_general_one():
    before = run_passes(parse_module(graph_text("gemm_softmax", SIZES)), FUSED)
    plan = "OB: M=2; OB/contract: K=3 N=2"
    after = run_passes(before, f'tile{{factors="{plan}"}}')
    func = next(iter(compute_functions(after)))
    assert func.attributes[PLAN] == StringAttr(plan)
    leaves = [
        op.factors
        for op in func.walk()
        if isinstance(op, TemporalOp) and "OB" in str(op.outs[0].type)
    ]
    assert leaves[0] == {"K": 3, "N": 2}
    assert set(map(str, leaves[1:])) == {"{'M': 2}"}
    assert_same_meaning(before, after, "main")


def test_auto_obeys_the_plan_of_the_function():
    before = run_passes(parse_module(graph_text("gemm_softmax", SIZES)), FUSED)
    func = next(iter(compute_functions(before)))
    func.attributes[PLAN] = StringAttr("DRAM: M=3")
    after = run_passes(before, "tile")
    root = next(op for op in after.walk() if isinstance(op, TemporalOp))
    assert root.factors == {"M": 3}


@pytest.mark.parametrize("op", ["gemm_softmax", "gemm_layernorm"])
def test_auto_finds_factors_that_keep_the_meaning(op: str):
    before = run_passes(parse_module(graph_text(op, (30, 7, 48))), FUSED)
    assert_same_meaning(before, run_passes(before, "tile"), "main")


def test_auto_says_why_nothing_fits():
    module = run_passes(parse_module(graph_text("gemm_softmax", (2, 65536, 16))), FUSED)
    with pytest.raises(PassFailedException, match="no valid mapping; with the finest"):
        run_passes(module, "tile")
