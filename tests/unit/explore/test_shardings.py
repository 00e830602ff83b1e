"""The ways to shard a program that are in the space."""

from itertools import product
from math import prod

import pytest
from accelerators import edge_like
from programs import graph_text
from semantics import parse_module, run_passes

from comet.passes.explore.constraints import Constraints, PartsOfAxes
from comet.passes.explore.quick import AUTO_DIM, AcceleratorPipeline
from comet.passes.explore.shardings import Shardings, dividing
from comet.passes.sharding.dim_axes import format_dims

SQUARES = ((2, 2), (2, 2))


def shardings(
    sizes: tuple[int, int, int],
    limits: Constraints,
    mesh: tuple[tuple[int, int], tuple[int, int]] = SQUARES,
) -> list[str]:
    """Return those of a product on `mesh`, clusters and cores, as options `dim`."""
    module = run_passes(
        parse_module(graph_text("gemm", sizes)),
        f'attach-hardware{{path="{edge_like(*mesh)}"}},decompose',
    )
    found = Shardings(limits, AcceleratorPipeline(dim=AUTO_DIM)).of(module)
    return [format_dims(dims) for dims in found]


WHOLE = {
    "",
    "M:cx,cy",
    "M:kx,ky",
    "N:cx,cy",
    "N:kx,ky",
    "N:cx,cy,kx,ky",
    "M:cx,cy;N:kx,ky",
    "N:cx,cy;M:kx,ky",
    "M:cx,cy,kx",  # of comet-accelerator
    "M:cx,kx",
    "N:cx,kx",
    "M:cx,kx;N:cy,ky",
}


def test_whole_axes_are_assigned_by_level_and_by_direction():
    found = shardings((8, 6, 16), Constraints(parts="none"))
    assert set(found) == WHOLE
    assert len(found) == len(WHOLE)


def test_of_axes_that_do_not_divide_the_most_instances_are_used():
    """Two instances along the first axis of each group divide K = 6, four do not."""
    found = set(shardings((8, 6, 16), Constraints()))
    assert found >= WHOLE
    assert found - WHOLE == {
        *("K:cx", "K:kx", "K:cx;M:kx,ky", "K:cx;N:kx,ky"),
        *("M:cx,cy;K:kx", "N:cx,cy;K:kx"),
        *("M:cx,kx;K:cy", "K:cx;N:cy,ky"),
    }


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [("largest", {"M:cx=2,cy=4"}), ("all", {"M:cx=2,cy=4", "M:cx=2,cy=2", "M:cy=4"})],
)
def test_axes_are_used_in_part(parts: PartsOfAxes, wanted: set[str]):
    """Neither 3 nor 5 divides 64; the most instances come first."""
    found = shardings((64, 7, 11), Constraints(parts=parts), ((3, 5), (1, 1)))
    assert wanted <= set(found)
    assert found[0] == "M:cx=2,cy=4"
    assert found[-1] == ""
    assert not any(dim.startswith("K:cx") for dim in found)


def test_each_axis_may_shard_a_dimension_of_its_own():
    found = set(shardings((8, 6, 16), Constraints(split=True)))
    assert {"M:cx;N:cy,kx,ky", "M:cx,kx;N:cy,ky", "K:cx", ""} <= found
    assert not {"N:cx;M:cy,kx,ky", "N:cx,ky;M:cy,kx", "K:cy"} & found
    assert "K:cx,cy" not in found  # 4 instances do not divide 6


@pytest.mark.parametrize(
    ("extent", "sizes"), [(24, (3, 5)), (60, (2, 4, 3)), (7, (8,))]
)
def test_numbers_of_instances_that_divide(extent: int, sizes: tuple[int, ...]):
    every = product(*(range(1, size + 1) for size in sizes))
    expected = {counts for counts in every if extent % prod(counts) == 0}
    found = dividing(extent, sizes)
    assert set(found) == expected
    assert len(found) == len(expected)
