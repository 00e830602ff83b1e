"""Ids that programs of the same launch store: they are loaded behind the wait."""

from pathlib import Path

from rank_runs import outcomes
from triton_modules import emitted, hardware

PROGRAM = """
!x = tensor<3x17xf32, #compound.dims<M, N>>
!row = tensor<17xf32, #compound.dims<N>>
!ids = tensor<17xi32, #compound.dims<N>>
!number = tensor<i32, #compound.dims<>>
!sums = tensor<7xf32, #compound.dims<R>>
func.func @main(%x: !x {collective.shard = {M = ["rank"]}}) -> !sums {
  %sum = compound.reduce add %x {collective.shard = {M = ["rank"]}} : !x -> !row
  %n = compound.index : !ids
  %most = compound.fill 6.0 : !number
  %ids = compound.map min %n, %most : !ids, !number -> !ids
  %sums = compound.scatter_add %sum, %ids into "R" : !row, !ids -> !sums
  func.return %sums : !sums
}
"""


def test_ids_of_the_same_launch_are_loaded_behind_the_wait(tmp_path: Path):
    options = "ranks=3 pattern=auto strategy=full between=spill"
    passes = f"{hardware('h200x8.yaml')},triton-distributed{{{options}}}"
    text = emitted(PROGRAM, passes)
    assert "tl.store(ids_ptr" in text
    assert text.index("wait_all(sum_flags_ptr") < text.index("tl.load(ids_ptr")
    assert outcomes({"main": text}, tmp_path) == {"main": "right"}
