"""Machines whose instances no link joins, or that have one of each: no collectives."""

from pathlib import Path

import pytest
from accelerators import EDGE, edge_like
from programs import graph_text

import comet

PROGRAM = graph_text("gemm_softmax", (8, 8, 32))
LIMITS = {"stream": False, "strategy": "full", "loops": "shared", "kind": "allreduce"}
REASON = "a collective runs at GB, whose instances no link joins"


@pytest.fixture(scope="module")
def unlinked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the edge sample without a network among its clusters."""
    text = EDGE.read_text()
    joined = "link_transfers: true, broadcast_support"
    assert joined in text
    path = tmp_path_factory.mktemp("unlinked") / "edge.yaml"
    path.write_text(text.replace(joined, "broadcast_support"))
    return path


def test_structures_with_collectives_are_rejected_where_no_link_is(unlinked: Path):
    limits = {**LIMITS, "dim": ["N:cx,cy", "M:cx,cy;N:kx,ky", "M:cx,cy"]}
    answer = comet.explore(PROGRAM, unlinked, limits)
    assert answer.proven
    assert answer.structures_rejected == 1
    assert any(REASON in reason for reason in answer.rejected_by)
    assert "comet.collective" not in str(answer.module)
    assert ": true; " in comet.verify(answer.certificate())


def test_where_all_structures_need_links_the_error_says_so(unlinked: Path):
    with pytest.raises(comet.CometError, match=REASON):
        comet.explore(PROGRAM, unlinked, {**LIMITS, "dim": "N:cx,cy"})


@pytest.mark.parametrize("dim", ["N", "N:cx,cy,kx,ky", "M:cx;N:kx", ""])
def test_one_core_shards_nothing(dim: str):
    one = edge_like((1, 1), (1, 1))
    options = f'{{dim="{dim}" strategy=full stream=false}}'
    mapped = comet.compile(PROGRAM, one, f"comet-accelerator{options}")
    assert "comet.collective" not in str(mapped.module)


def test_one_core_has_one_sharding():
    answer = comet.explore(PROGRAM, edge_like((1, 1), (1, 1)), LIMITS)
    assert answer.structures == 1
