"""Where messages of channels begin and end, in dimensions of some shapes."""

from pathlib import Path

from covering import EVERY_CASE
from rank_runs import outcomes
from triton_modules import emitted, hardware

PROGRAM = """
!a = tensor<{n}x5xf32, #compound.dims<N, M>>
!b = tensor<{n}x7xf32, #compound.dims<N, K>>
!c = tensor<{n}x5x7xf32, #compound.dims<N, M, K>>
func.func @main(
  %a: !a {{collective.shard = {{N = ["rank"]}}}},
  %b: !b {{collective.shard = {{K = ["rank"]}}}}
) -> (!c {{collective.shard = {{M = ["rank"]}}}}) {{
  %x = compound.map neg %a : !a -> !a
  %y = compound.map neg %b : !b -> !b
  %c = compound.map mult %x, %y : !a, !b -> !c
  func.return %c : !c
}}
"""


def module(pattern: str, extent: int, ranks: int) -> str:
    options = f"ranks={ranks} pattern={pattern} strategy=none"
    passes = f"{hardware('h200x8.yaml')},triton-distributed{{{options}}}"
    return emitted(PROGRAM.format(n=extent), passes)


def test_a_flag_of_the_whole_is_found_by_the_row_of_the_whole():
    """Of x each source has three rows; of y each has all five, in blocks of two."""
    text = module("pull", 5, 2)
    assert "wait(x_flags_ptr + (source * 3 + (n - start_n)), epoch)" in text
    assert "wait(y_flags_ptr + (source_1 * 3 + n // 2), epoch)" in text


def test_all_rows_are_waited_for(tmp_path: Path):
    few, many = ("wait", "pull", "push"), ("fused",)
    if EVERY_CASE:
        few, many = (*few, "fused"), ("pull", *many)
    sources = {name: module(name, 5, 2) for name in few}
    sources |= {f"{name} of 3": module(name, 10, 3) for name in many}
    found = outcomes(sources, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert set(found.values()) == {"right"}


ONE_COLUMN = """
!x = tensor<31x1xf32, #compound.dims<N, M>>
!row = tensor<31xf32, #compound.dims<N>>
func.func @main(
  %x: !x {collective.shard = {N = ["rank"]}}
) -> (!x {collective.shard = {M = ["rank"]}}) {
  %s = compound.reduce add %x : !x -> !row
  %y = compound.map add %x, %s : !x, !row -> !x
  func.return %y : !x
}
"""


def test_one_rank_gets_a_dimension_of_one_element(tmp_path: Path):
    """A tile has no axis for it, and its only position is 0."""
    passes = f"{hardware('h200x8.yaml')},triton-distributed{{ranks=3 pattern=fused}}"
    sources = {"fused": emitted(ONE_COLUMN, passes)}
    assert outcomes(sources, tmp_path) == {"fused": "right"}


SHARD_AND_WHOLE = """
!x = tensor<8x1xf32, #compound.dims<N, M>>
!row = tensor<8xf32, #compound.dims<N>>
func.func @main(
  %x: !x {collective.shard = {M = ["rank"]}}, %z: !x
) -> (!x {collective.shard = {M = ["rank"]}}, !row) {
  %y = compound.map neg %x : !x -> !x
  %r = compound.reduce add %z : !x -> !row
  %w = compound.map add %y, %r : !x, !row -> !x
  func.return %w, %r : !x, !row
}
"""


def test_one_element_is_the_shard_of_one_rank_and_the_whole_of_all(tmp_path: Path):
    """A kernel of their own makes the sums, which ranks without a shard have, too."""
    passes = f"{hardware('h200x8.yaml')},triton-distributed{{ranks=3 pattern=bsp}}"
    sources = {"bsp": emitted(SHARD_AND_WHOLE, passes)}
    assert outcomes(sources, tmp_path) == {"bsp": "right"}
