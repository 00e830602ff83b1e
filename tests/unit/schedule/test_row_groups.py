"""How many rows each group of programs of a GPU has."""

import pytest

from comet.passes.schedule.tile.gpu.space import RowGroups, row_groups


@pytest.mark.parametrize(
    ("extent", "block", "most", "groups", "turns"),
    [
        (4096, 128, 8, 8, 4),
        (97, 16, 100, 7, 1),  # a block each
        (97, 32, 2, 2, 2),
        (97, 32, 1, 1, 4),
        (4224, 128, 8, 5, 8),  # parts of whole blocks, of which seven are none
        (5, 16, 4, 1, 1),
    ],
)
def test_all_groups_run_at_the_same_time(
    extent: int, block: int, most: int, groups: int, turns: int
):
    found = row_groups(extent, block, most)
    assert found == RowGroups(groups, turns)
    assert found.groups <= most
    assert found.groups * found.turns * block >= extent
