"""How many programs signal to each flag, by `lower-channels` and by `verify-sync`."""

from pathlib import Path

import pytest
from gpu_ranks import H200X8
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import to_triton
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow.flags import FlagsOp

TWICE_SENT = """
!X = tensor<3x5x130xbf16, #compound.dims<N, M, K>>
!I = tensor<3x16xi64, #compound.dims<T, S>>
!G = tensor<3x5x3x16xbf16, #compound.dims<N, M, T, S>>
!W = tensor<3x5x3x16xf32, #compound.dims<N, M, T, S>>
!R = tensor<3x15x16xbf16, #compound.dims<N, R, S>>
!V = tensor<3x15x16xf32, #compound.dims<N, R, S>>
!Y = tensor<15x16x5x3xf32, #compound.dims<R, S, M, T>>
func.func @main(%x: !X {collective.shard = {}},
                %i: !I {collective.shard = {T = ["rank"]}})
    -> (!Y {collective.shard = {M = ["rank"]}}) {
  %g = compound.gather %x, %i along "K" : !X, !I -> !G
  %r = compound.rename %g merge "M" : !G -> !R
  %w = compound.cast %g : !G -> !W
  %v = compound.cast %r : !R -> !V
  %y = compound.contract %v, %w : !V, !W -> !Y
  func.return %y : !Y
}
"""
"""One kernel sends %g to all ranks, and the rows M of %w to the rank that has them."""
PASSES = (
    f"{H200X8},select-ranks{{ranks=4}},decompose,lower-views,propagate-shardings,"
    "insert-collectives,merge-collectives,place-collectives,lower-reductions,"
    "lower-views,fuse{strategy=partial between=auto},tile,outline-kernels,"
    "bsp-to-dataflow{pattern=auto},lower-channels"
)


def test_programs_behind_an_unequal_shard_have_no_block(tmp_path: Path) -> None:
    """Of 4 shards of 2 rows 5 rows are there: 8 x 2 programs for 5 blocks of 2."""
    module = run_passes(parse_module(TWICE_SENT), f"{PASSES},verify-sync")
    flags = [op for op in module.walk() if isinstance(op, FlagsOp)]
    assert [op.writers.value.data for op in flags] == [2, 1]
    source = to_triton(run_passes(module, "materialize-copies,place-waits"))
    assert outcomes({"twice": source}, tmp_path, seeds=1) == {"twice": "right"}


def test_signals_are_counted_tile_by_tile() -> None:
    """`verify-sync` finds three writers counted, where two tiles are in each block."""
    module = run_passes(parse_module(TWICE_SENT), PASSES)
    flags = next(op for op in module.walk() if isinstance(op, FlagsOp))
    flags.writers = IntegerAttr(3, i64)
    with pytest.raises(PassFailedException, match=r"count 3 writers, .* makes 2 tiles"):
        run_passes(module, "verify-sync")
