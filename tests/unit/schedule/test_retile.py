"""Recomputing the types of a tile tree from its loops."""

import pytest
from semantics import assert_same_meaning, run_passes
from tile_trees import fused, only_function, ops_of
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.passes.schedule.retile import aligned_tile, retile, set_loops


@pytest.mark.parametrize(
    ("extent", "factor", "even", "aligned"),
    [
        (12, 1, 12, 12),
        (12, 3, 4, 4),
        (12, 4, 3, 3),
        (100, 4, 25, 32),
        (100, 7, 15, 16),
        (7, 7, 1, 1),
        (13, 2, 7, 8),
    ],
)
def test_tiles(extent: int, factor: int, even: int, aligned: int):
    assert ceil_div(extent, factor) == even
    assert aligned_tile(extent, factor) == aligned
    assert ceil_div(extent, aligned) == factor


def test_loops_decide_types_and_combiners():
    module = fused()
    leaf = ops_of(module, TemporalOp)[2]
    set_loops(leaf, [LoopAttr("K", 4), LoopAttr("M", 2)])
    retile(only_function(module))
    module.verify()
    assert leaf.combiners == (Combiner.ADD,)
    assert [extents_of(tile) for tile in leaf.tiles] == [
        {"M": 3, "K": 1},
        {"K": 1, "N": 2},
    ]


def test_taking_loops_away_takes_combiners_away():
    before = fused()
    module = run_passes(before, 'tile{factors="c_ob: K=4"}')
    for node in ops_of(module, TemporalOp):
        set_loops(node, ())
    retile(only_function(module))
    module.verify()
    assert ops_of(module, TemporalOp)[2].combine is None
    assert_same_meaning(before, module, "main")


def test_a_body_that_cannot_be_split_is_an_error():
    module = fused()
    set_loops(ops_of(module, TemporalOp)[0], [LoopAttr("N", 2)])
    with pytest.raises(VerifyException, match="partial"):
        retile(only_function(module))


@pytest.mark.parametrize(("plan", "whole"), [("", 13), ("y_dram: M=13", 1)])
def test_scattered_shards_are_gathered_again(plan: str, whole: int):
    tree = fused(sizes=(13, 4, 32), place="kind=reduce_scatter_all_gather")
    module = run_passes(tree, f'tile{{factors="{plan}"}}')
    names = [op.name for op in ops_of(module, CollectiveOp)]
    assert names == ["collective.reduce_scatter", "collective.all_gather"] * 2
    scatter, gather, *_ = ops_of(module, CollectiveOp)
    assert extents_of(scatter.results[0]) == {"M": -(-whole // 4)}
    assert extents_of(gather.results[0]) == {"M": whole}
    assert_same_meaning(tree, module, "main")
