"""The samples that several ranks share: their meaning and their collectives."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from covering import one_of
from paths import SAMPLES
from programs import mesh_text
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import IndexOp
from comet.dialects.compound.named import AT_MOST
from comet.interpreter import run

RANKS = (1, 2, 3, 4, 8)
COLLECTIVES = {
    "ag_gemm": ["all_gather"],
    "gemm_all_reduce": ["all_reduce"],
    "gemm_reduce_scatter": ["reduce_scatter"],
    "expert_gemm": ["all_to_all"],
    "flash_decode": ["all_gather"] * 3,
    "ring_attention": ["all_gather", "all_gather"],
}


@one_of(3)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_sample(name: str, ranks: int):
    text = (SAMPLES / f"{name}.mlir").read_text()
    before = parse_module(mesh_text({"rank": ranks}) + text)
    after = run_passes(before, "decompose,stream,insert-collectives")
    assert_same_meaning(before, after, name)
    found = [op.name for op in after.walk() if isinstance(op, CollectiveOp)]
    assert found == [f"collective.{kind}" for kind in COLLECTIVES[name]]


DECODE = """
func.func @main(%q: tensor<2x1x3x5xf32>, %k: tensor<2x1x11x5xf32>,
    %v: tensor<2x1x11x4xf32>, %lens: tensor<2xi32>) -> tensor<2x1x3x4xf32> {
  %o = compound.flash_decode %q, %k, %v, %lens {collective.shard = {S = ["rank"]}}
    : (tensor<2x1x3x5xf32>, tensor<2x1x11x5xf32>, tensor<2x1x11x4xf32>, tensor<2xi32>)
    -> tensor<2x1x3x4xf32>
  func.return %o : tensor<2x1x3x4xf32>
}
"""


@cache
def decoding(ranks: int) -> tuple[ModuleOp, Sequence[ModuleOp]]:
    """Return the program, and it on ranks, without and with streams."""
    before = parse_module(mesh_text({"rank": ranks}) + DECODE)
    passes = ("decompose,insert-collectives", "decompose,stream,insert-collectives")
    return before, [run_passes(before, each) for each in passes]


@one_of(2)
@pytest.mark.parametrize("lengths", [(1, 11), (2, 3), (1, 1), (12, 99)])
@pytest.mark.parametrize("ranks", RANKS)
def test_ranks_whose_share_is_masked_whole(ranks: int, lengths: tuple[int, int]):
    """At length 1 only the first rank sees a key; the others count for nothing."""
    before, shared = decoding(ranks)
    q, k, v, _ = random_inputs(before, "main")
    inputs = [q, 100 * k, v, np.array(lengths, dtype=np.float64)]
    expected = run(before, "main", inputs)
    for after in shared:
        assert_close(run(after, "main", inputs), expected)


def test_what_lies_beyond_the_lengths_counts_nothing():
    before = parse_module(mesh_text({"rank": 3}) + DECODE)
    after = run_passes(before, "decompose,stream,insert-collectives,lower-reductions")
    q, k, v, _ = random_inputs(before, "main")
    lengths = np.array([4.0, 7.0])
    expected = run(before, "main", [q, k, v, lengths])
    for entry, length in enumerate((4, 7)):
        k[entry, :, length:] = 1e4
        v[entry, :, length:] = -1e4
    assert_close(run(after, "main", [q, k, v, lengths]), expected)


def test_a_rank_counts_the_positions_of_its_shard():
    """The local positions are those of the whole, and only as many as there are."""
    text = """
    collective.mesh @mesh {x = 2, y = 3}
    func.func @main(%n: tensor<11xf32, #compound.dims<N>>)
        -> (tensor<11xf32, #compound.dims<N>>, tensor<f32, #compound.dims<>>) {
      %i = compound.index : tensor<11xf32, #compound.dims<N>>
      %y = compound.map add %i, %n {collective.shard = {N = ["y", "x"]}}
        : tensor<11xf32, #compound.dims<N>>, tensor<11xf32, #compound.dims<N>>
        -> tensor<11xf32, #compound.dims<N>>
      %s = compound.reduce add %i {collective.shard = {N = ["x", "y"]}}
        : tensor<11xf32, #compound.dims<N>> -> tensor<f32, #compound.dims<>>
      func.return %y, %s
        : tensor<11xf32, #compound.dims<N>>, tensor<f32, #compound.dims<>>
    }"""
    before = parse_module(text)
    after = run_passes(before, "insert-collectives")
    shares = [op for op in after.walk() if isinstance(op, IndexOp)]
    assert [op.axis_names for op in shares] == [("y", "x"), ("x", "y")]
    assert_same_meaning(before, after, "main")


def test_the_signature_says_how_much_is_counted():
    after = run_passes(parse_module(DECODE), "decompose")
    for function in after.ops:
        assert isinstance(function, FuncOp)
        assert function.arg_attrs is not None
        counted = [AT_MOST in own.data for own in function.arg_attrs]
        assert counted == [False, False, False, True]
        assert str(function.arg_attrs.data[3].data[AT_MOST]) == "11 : i64"
