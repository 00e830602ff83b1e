"""The samples that several ranks share: their meaning and their collectives."""

from pathlib import Path

import pytest
from programs import mesh_text
from semantics import assert_same_meaning, parse_module, run_passes

from comet.dialects.collective import CollectiveOp

SAMPLES = Path(__file__).parents[2] / "samples"
RANKS = (1, 2, 3, 4, 8)
COLLECTIVES = {
    "ag_gemm": ["all_gather"],
    "gemm_all_reduce": ["all_reduce"],
    "gemm_reduce_scatter": ["reduce_scatter"],
    "expert_gemm": ["all_to_all"],
    "ring_attention": ["all_gather", "all_gather"],
}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_sample(name: str, ranks: int):
    text = (SAMPLES / f"{name}.mlir").read_text()
    before = parse_module(mesh_text({"rank": ranks}) + text)
    after = run_passes(before, "decompose,stream,insert-collectives")
    assert_same_meaning(before, after, name)
    found = [op.name for op in after.walk() if isinstance(op, CollectiveOp)]
    assert found == [f"collective.{kind}" for kind in COLLECTIVES[name]]
