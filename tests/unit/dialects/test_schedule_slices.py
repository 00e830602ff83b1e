"""How loops cut a dimension into slices."""

import pytest

from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.slices import cuts_along, is_tile, with_tile

RANKS_THEN_TILES = (LoopAttr("K", 3), LoopAttr("M", 7), LoopAttr("K", 2))
MESH = (LoopAttr("K", 3, "cx"), LoopAttr("K", 2, "cy"))


def test_a_second_loop_cuts_the_slices_of_the_first():
    first, second = cuts_along(RANKS_THEN_TILES, "K", 10)
    assert (first.extent, first.factor, first.tile) == (10, 3, 4)
    assert (second.extent, second.factor, second.tile) == (4, 2, 2)


def test_mesh_axes_cut_a_dimension_together():
    (cut,) = cuts_along(MESH, "K", 10, on_mesh=True)
    assert (cut.extent, cut.factor, cut.tile) == (10, 6, 2)
    assert cut.loops == MESH


def test_a_dimension_without_loops_is_one_slice():
    (cut,) = cuts_along(RANKS_THEN_TILES, "N", 10)
    assert (cut.extent, cut.factor, cut.tile) == (10, 1, 10)


@pytest.mark.parametrize(
    ("tile", "fits"), [(0, False), (1, False), (2, True), (3, True), (4, False)]
)
def test_a_tile_needs_as_many_slices_as_its_loop_has(tile: int, fits: bool):
    cuts = cuts_along(RANKS_THEN_TILES, "K", 10)
    assert is_tile(cuts[-1], tile) is fits
    assert with_tile(cuts, tile)[-1].tile == tile
    assert with_tile(cuts, tile)[:-1] == cuts[:-1]


def test_tiles_on_a_mesh_are_even():
    (cut,) = cuts_along((LoopAttr("K", 3, "cx"),), "K", 10, on_mesh=True)
    assert [tile for tile in range(11) if is_tile(cut, tile, on_mesh=True)] == [4]
