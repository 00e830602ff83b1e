"""comet.runtime.control_flow: blocks come after those that lead to them."""

import re

import pytest

from comet.runtime.assembly import GPUS, Code, faults
from comet.runtime.control_flow import Jumps, in_order

AMD = GPUS["gfx942"].jumps
NVIDIA = GPUS["sm_90"].jumps

OUT_OF_LINE = """
first
s_cbranch_execnz .LBB0_2
.LBB0_1:
third
s_endpgm
.LBB0_2:
second
s_branch .LBB0_1
metadata
"""
LOOP = """
first
.LBB0_1:
second
s_cbranch_scc1 .LBB0_3
s_branch .LBB0_4
.LBB0_3:
third
s_branch .LBB0_1
.LBB0_4:
fourth
"""
BODY_BEHIND_THE_END = """
first
.LBB0_1:
second
s_cbranch_scc1 .LBB0_3
fourth
s_endpgm
.LBB0_3:
third
s_branch .LBB0_1
"""
PTX = """
first
$L__BB0_1:
second
@%p1 bra $L__BB0_3;
bra.uni $L__BB0_2;
$L__BB0_2:
fourth
ret;
$L__BB0_3:
third
bra.uni $L__BB0_2;
"""
NUMBERS = ["first", "second", "third", "fourth"]


@pytest.mark.parametrize(
    ("text", "jumps"),
    [(OUT_OF_LINE, AMD), (LOOP, AMD), (BODY_BEHIND_THE_END, AMD), (PTX, NVIDIA)],
    ids=["out of line", "loop", "body after the end", "ptx"],
)
def test_blocks_follow_those_that_lead_to_them(text: str, jumps: Jumps):
    found = re.findall("|".join(NUMBERS), in_order(text, jumps))
    assert found == NUMBERS[: len(found)]
    assert len(found) >= 3


@pytest.mark.parametrize("text", [OUT_OF_LINE, LOOP, BODY_BEHIND_THE_END])
def test_every_line_is_there_once(text: str):
    assert sorted(in_order(text, AMD).splitlines()) == sorted(text.splitlines())


STORE = "global_store_dword v[0:1], v2, off sc0 sc1\n"
TOLD = """
s_cbranch_execnz .LBB0_2
.LBB0_1:
s_waitcnt vmcnt(0)
s_barrier
buffer_wbl2 sc0 sc1
s_endpgm
.LBB0_2:
{store}s_branch .LBB0_1
"""


def test_what_is_stored_out_of_line_comes_before_the_flag():
    right = TOLD.format(store=STORE)
    asked = "tt.store %0, %1 cacheModifier = wt\nttg.barrier\n"
    asked += "%2 = tt.atomic_rmw exch, release, sys, %3\n"
    for text, wrong in ((right, False), (right.replace("s_barrier\n", ""), True)):
        code = Code("gfx942", asked, ttgir="", assembly=text, shared=0, spills=0)
        assert bool(faults(code)) == wrong
