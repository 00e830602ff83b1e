"""The reference interpreter on launch plans."""

import numpy as np
import pytest
from semantics import assert_close, parse_module
from xdsl.utils.exceptions import InterpretationError

from comet.interpreter import run

PROGRAM = """
!C = tensor<5x7xf64, #compound.dims<M, N @HBM>>
!R = tensor<5xf64, #compound.dims<M @HBM>>
func.func @f(%c: !C) -> (!C, !R) {
  %p:2 = dataflow.program ins(%c : !C) {
  ^bb0(%c1: !C):
    %twice = dataflow.buffer : !C
    %rows = dataflow.buffer : !R
    %d = dataflow.kernel @double ins(%c1 : !C) outs(%twice : !C) {
    ^bb0(%c2: !C):
      %d1 = compound.map add %c2, %c2 : !C, !C -> !C
      dataflow.yield %d1 : !C
    } -> !C
    dataflow.barrier
    %r = dataflow.kernel @rows ins(%d : !C) outs(%rows : !R) {
    ^bb0(%d2: !C):
      %r1 = compound.reduce add %d2 : !C -> !R
      dataflow.yield %r1 : !R
    } -> !R
    dataflow.yield %d, %r : !C, !R
  } -> !C, !R
  func.return %p#0, %p#1 : !C, !R
}
"""


def test_kernels_run_in_order():
    c = np.random.default_rng(1).standard_normal((5, 7))
    assert_close(run(parse_module(PROGRAM), "f", [c]), [2 * c, 2 * c.sum(axis=1)])


def test_a_buffer_that_no_kernel_wrote_is_undefined():
    text = PROGRAM.replace("dataflow.yield %d, %r", "dataflow.yield %twice, %r")
    text = text.replace("outs(%twice", "outs(%other").replace(
        "%twice =", "%other = dataflow.buffer : !C\n    %twice ="
    )
    undefined, rows = run(parse_module(text), "f", [np.ones((5, 7))])
    assert np.all(np.isnan(undefined))
    assert_close([rows], [np.full(5, 14.0)])


def test_a_buffer_names_its_dimensions():
    text = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = dataflow.program ins(%x : tensor<4xf32>) {
      ^bb0(%y: tensor<4xf32>):
        %b = dataflow.buffer : tensor<4xf32>
        dataflow.yield %b : tensor<4xf32>
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }"""
    with pytest.raises(InterpretationError, match="has no named dimensions"):
        run(parse_module(text), "f", [np.zeros(4)])
