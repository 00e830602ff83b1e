"""How many rows each group of programs of a GPU has."""

import pytest

from comet.dialects.compound.dims import ceil_div
from comet.passes.schedule.retile import aligned_tile
from comet.passes.schedule.tile.gpu.space import RowGroups, row_groups


@pytest.mark.parametrize(
    ("extent", "block", "most", "groups", "turns"),
    [
        (4096, 128, 8, 8, 4),
        (5000, 128, 8, 8, 5),
        (97, 16, 100, 7, 1),  # a block each
        (97, 32, 2, 2, 2),
        (97, 32, 1, 1, 4),
        (4224, 128, 8, 7, 5),  # 33 blocks, the last group has three
        (5, 16, 4, 1, 1),
    ],
)
def test_all_groups_run_at_the_same_time(
    extent: int, block: int, most: int, groups: int, turns: int
):
    assert row_groups(extent, block, most) == RowGroups(groups, turns)


def test_no_group_has_more_turns_than_it_must():
    for extent in range(1, 300):
        for most in (1, 2, 3, 8, 33):
            found = row_groups(extent, 16, most)
            blocks = ceil_div(extent, 16)
            assert found.groups <= most
            assert found.turns == ceil_div(blocks, most)
            assert (found.groups - 1) * found.turns < blocks


def test_the_rows_of_a_group_are_whole_blocks():
    for extent in range(17, 300):
        for most in (2, 3, 8, 33):
            found = row_groups(extent, 16, most)
            tile = aligned_tile(extent, found.groups, found.turns)
            if found.groups > 1:
                assert tile == 16 * found.turns
                assert aligned_tile(tile, found.turns) == 16
