"""`use-ge`: the same elements are true, also without a position before or after."""

import numpy as np
from semantics import parse_module, run_passes

from comet.interpreter import run

MASKS = """
!n = tensor<5xi32, #compound.dims<N>>
!x = tensor<7xi32, #compound.dims<M>>
!b = tensor<7x5xi1, #compound.dims<M, N>>
func.func @f(%x: !x) -> (!b, !b) {
  %n = compound.index : !n
  %before = compound.map gt %x, %n : !x, !n -> !b
  %after = compound.map gt %n, %x : !n, !x -> !b
  func.return %before, %after : !b, !b
}
"""


def test_the_same_positions_are_seen():
    module = parse_module(MASKS)
    after = run_passes(module, "use-ge")
    assert "map gt" not in str(after)
    counts = [np.arange(-1.0, 6.0)]
    for one, other in zip(
        run(module, "f", counts), run(after, "f", counts), strict=True
    ):
        assert np.array_equal(one, other)
        assert 0 < one.sum() < one.size
