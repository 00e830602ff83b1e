"""What a program spills and reads again is its own, whatever the grid is."""

from pathlib import Path

from gpu_ranks import H200X8
from rank_runs import outcomes
from triton_modules import LOWER, emitted
from triton_schedules import schedule

THREE_GEMMS = """
func.func @f(%a: tensor<32x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf16>,
             %d: tensor<16x64xf16>) -> tensor<32x64xf16> {
  %1 = compound.gemm %a, %b : (tensor<32x16xf16>, tensor<16x16xf16>)
      -> tensor<32x16xf16>
  %2 = compound.gemm %1, %c : (tensor<32x16xf16>, tensor<16x16xf16>)
      -> tensor<32x16xf16>
  %3 = compound.gemm %2, %d : (tensor<32x16xf16>, tensor<16x64xf16>)
      -> tensor<32x64xf16>
  func.return %3 : tensor<32x64xf16>
}
"""
"""Programs of one row and other columns all need the first product."""


def three_gemms(options: str) -> str:
    pipeline = f"{H200X8},triton-distributed{{{options} strategy=full}}"
    return emitted(THREE_GEMMS, pipeline)


def shared_rows() -> str:
    sizes = {"M": 20, "N": 23, "K": 11}
    tiles = {"M": 16, "N": 16, "K": 4}
    return emitted(schedule("shared_rows", sizes, tiles), LOWER)


def replaced(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


def test_programs_have_buffers_of_their_own(tmp_path: Path) -> None:
    sources = {
        "one_rank": three_gemms("ranks=1"),
        "two_ranks": three_gemms("ranks=2 dim=M"),
        "also_returned": shared_rows(),
    }
    assert outcomes(sources, tmp_path) == dict.fromkeys(sources, "right")


def test_a_shared_buffer_is_a_race_on_any_number_of_ranks(tmp_path: Path) -> None:
    own = "scratch_ptr + pid_n2 * M * N"
    sources = {
        "one_rank": replaced(three_gemms("ranks=1"), own, "scratch_ptr"),
        "stored_by_all": replaced(shared_rows(), " & stores", ""),
        "buffer_of_all": replaced(shared_rows(), "e1_ptr + pid_n * M * K", "e1_ptr"),
    }
    assert outcomes(sources, tmp_path) == dict.fromkeys(sources, "RaceError")
