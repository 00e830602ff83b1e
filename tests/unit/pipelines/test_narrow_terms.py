"""`terms=narrow`: ranks send the terms of sums in the type that sums are cast to."""

from pathlib import Path

import pytest
from covering import fraction
from gpu_ranks import H200X8
from rank_runs import outcomes
from triton_modules import emitted
from xdsl.utils.exceptions import PassFailedException

SHARD = '{collective.shard = {K = ["rank"]}}'
A, B, C = "tensor<17x24xbf16>", "tensor<24x10xbf16>", "tensor<17x10xbf16>"
PATTERNS = ("bsp", "push", "pull", "fused")


def program(shard: str) -> str:
    """Return a product whose terms ranks add, with a result in shards or not."""
    return f"""
func.func @main(%a: {A} {SHARD}, %b: {B} {SHARD}) -> ({C} {shard}) {{
  %c = compound.gemm %a, %b {SHARD} : ({A}, {B}) -> {C}
  func.return %c : {C}
}}"""


PROGRAMS = {
    "reduce-scatter": program('{collective.shard = {M = ["rank"]}}'),
    "all-reduce": program(""),
}


def kernels(name: str, pattern: str, terms: str) -> str:
    options = f"ranks=3 pattern={pattern} terms={terms}"
    return emitted(PROGRAMS[name], f"{H200X8},triton-distributed{{{options}}}")


def test_narrow_terms_are_right(tmp_path: Path):
    sources = {
        f"{name} {pattern}".replace("-", "_").replace(" ", "_"): kernels(
            name, pattern, "narrow"
        )
        for name, pattern in fraction(PROGRAMS, PATTERNS, 4)
    }
    found = outcomes(sources, tmp_path, seeds=1)
    assert found == dict.fromkeys(sources, "right")


@pytest.mark.parametrize("name", PROGRAMS)
def test_half_the_bytes_are_received(name: str):
    sent = {"wide": "torch.float32", "narrow": "torch.bfloat16"}
    for terms, element in sent.items():
        text = kernels(name, "push", terms)
        (received,) = [line for line in text.splitlines() if '_recv")' in line]
        assert element in received


def test_groups_of_programs_send_no_narrow_terms():
    with pytest.raises(PassFailedException, match="the option 'terms' asks for narrow"):
        emitted(
            PROGRAMS["all-reduce"].replace(SHARD, ""),
            f"{H200X8},triton-distributed{{ctas=2 dim=N terms=narrow}}",
        )
