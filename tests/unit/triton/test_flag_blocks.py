"""A dimension that one channel gathers, and another has blocks of as a whole."""

from pathlib import Path

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
    sources = {name: module(name, 5, 2) for name in ("wait", "pull", "push", "fused")}
    sources |= {f"{name} of 3": module(name, 10, 3) for name in ("pull", "fused")}
    assert set(outcomes(sources, tmp_path).values()) == {"right"}
