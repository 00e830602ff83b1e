"""
Two loops over one dimension in the reference interpreter: shares, and their tiles.
"""

import numpy as np
import pytest
from semantics import assert_close, parse_module

from comet.interpreter import run

# Of 10 elements 3 ranks get shares of 4, 4 and 2; in tiles of 3 these are 3+1, 3+1, 2.
SIDE_BY_SIDE = """
!X = tensor<10x5xf64, #compound.dims<M, N @HBM>>
!T = tensor<3x5xf64, #compound.dims<M, N @REG>>
func.func @f(%x: !X) -> !X {
  %y = schedule.spatial on grid [g0: M = 3, g1: M = 2] ins(%x : !X) outs(!X) {
  ^bb0(%t: !T):
    %d = compound.map add %t, %t : !T, !T -> !T
    schedule.yield %d : !T
  }
  return %y : !X
}
"""
SUMMED = """
!X = tensor<5x10xf64, #compound.dims<M, N @HBM>>
!R = tensor<5xf64, #compound.dims<M @REG>>
!T = tensor<5x3xf64, #compound.dims<M, N @REG>>
func.func @f(%x: !X) -> !R {
  %y = schedule.temporal [N = 3, N = 2] ins(%x : !X) outs(!R) combine ["add"] {
  ^bb0(%t: !T):
    %r = compound.reduce add %t : !T -> !R
    schedule.yield %r : !R
  }
  return %y : !R
}
"""
CARRIED = """
!X = tensor<5x10xf64, #compound.dims<M, N @HBM>>
!R = tensor<5xf64, #compound.dims<M @REG>>
!T = tensor<5x3xf64, #compound.dims<M, N @REG>>
func.func @f(%x: !X) -> !R {
  %zero = compound.fill 0.0 : !R
  %y = schedule.temporal [N = 3, N = 2] ins(%x : !X) iter_args(%zero : !R) outs(!R)
      combine ["fold"] {
  ^bb0(%t: !T, %before: !R):
    %r = compound.reduce add %t : !T -> !R
    %s = compound.map add %before, %r : !R, !R -> !R
    schedule.yield %s : !R
  }
  return %y : !R
}
"""


def test_tiles_are_concatenated_shard_by_shard():
    x = np.random.default_rng(1).standard_normal((10, 5))
    assert_close(run(parse_module(SIDE_BY_SIDE), "f", [x]), [2 * x])


@pytest.mark.parametrize("text", [SUMMED, CARRIED])
def test_every_element_is_combined_once(text: str):
    x = np.random.default_rng(2).standard_normal((5, 10))
    assert_close(run(parse_module(text), "f", [x]), [x.sum(axis=1)])
