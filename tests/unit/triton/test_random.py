"""Random numbers in Triton kernels: those of the reference, bit for bit."""

from pathlib import Path

import pytest
from triton_modules import check_all, compile_all, emitted, hardware

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed"

TYPES = """
!x = tensor<33x50xf32, #compound.dims<M, N>>
!b = tensor<33x50xi1, #compound.dims<M, N>>
!i = tensor<33x50xi32, #compound.dims<M, N>>
!all = tensor<1650xi32, #compound.dims<K>>
!m = tensor<33xi32, #compound.dims<M>>
!n = tensor<50xi32, #compound.dims<N>>
!sum = tensor<33xf32, #compound.dims<M>>
!seed = tensor<i64, #compound.dims<>>
!count = tensor<i32, #compound.dims<>>
!s = tensor<f32, #compound.dims<>>
"""

PROGRAMS = {
    "of all positions": """
    func.func @main(%seed: !seed) -> !x {
      %all = compound.index : !all
      %i = compound.rename %all split "K" : !all -> !i
      %u = compound.map random %seed, %i : !seed, !i -> !x
      func.return %u : !x
    }""",
    "of two positions": """
    func.func @main(%seed: !seed) -> !x {
      %m = compound.index : !m
      %width = compound.fill 50.0 : !count
      %row = compound.map mult %m, %width : !m, !count -> !m
      %n = compound.index : !n
      %i = compound.map add %row, %n : !m, !n -> !i
      %u = compound.map random %seed, %i : !seed, !i -> !x
      func.return %u : !x
    }""",
    "of a constant seed": """
    func.func @main(%n: !n) -> tensor<50xf32, #compound.dims<N>> {
      %seed = compound.fill -3.0 : !seed
      %u = compound.map random %seed, %n : !seed, !n
          -> tensor<50xf32, #compound.dims<N>>
      func.return %u : tensor<50xf32, #compound.dims<N>>
    }""",
    "of a constant position": """
    func.func @main(%m: !m) -> !sum {
      %three = compound.fill 3.0 : !count
      %u = compound.map random %m, %three : !m, !count -> !sum
      func.return %u : !sum
    }""",
    "of constants": """
    func.func @main(%x: !sum) -> (!sum, !s) {
      %seed = compound.fill 5.0 : !seed
      %three = compound.fill 3.0 : !count
      %u = compound.map random %seed, %three : !seed, !count -> !s
      %y = compound.map max %x, %u : !sum, !s -> !sum
      func.return %y, %u : !sum, !s
    }""",
    "of seeds of rows": """
    func.func @main(%seeds: !m) -> !x {
      %n = compound.index : !n
      %u = compound.map random %seeds, %n : !m, !n -> !x
      func.return %u : !x
    }""",
}

DROPOUT = """
func.func @main(%x: !x, %seed: !seed) -> (!x, !sum) {
  %m = compound.index : !m
  %width = compound.fill 50.0 : !count
  %row = compound.map mult %m, %width : !m, !count -> !m
  %n = compound.index : !n
  %i = compound.map add %row, %n : !m, !n -> !i
  %u = compound.map random %seed, %i : !seed, !i -> !x
  %p = compound.fill 0.3 : !s
  %kept = compound.map ge %u, %p : !x, !s -> !b
  %scale = compound.fill 1.4285714 : !s
  %scaled = compound.map mult %x, %scale : !x, !s -> !x
  %zero = compound.fill 0.0 : !s
  %y = compound.map select %kept, %scaled, %zero : !b, !x, !s -> !x
  %sum = compound.reduce add %y : !x -> !sum
  func.return %y, %sum : !x, !sum
}"""


def test_kernels_have_the_numbers_of_the_reference(tmp_path: Path):
    sources = {name: emitted(TYPES + each, ONE_GPU) for name, each in PROGRAMS.items()}
    for name, report in check_all(sources, tmp_path).items():
        assert report["ok"], name
        assert report["max_error"] == 0, name


RANKS = f"{hardware('h200x8.yaml')},triton-distributed"


@pytest.mark.parametrize("dim", ["M", "N"])
@pytest.mark.parametrize("positions", ["of all positions", "of two positions"])
def test_ranks_have_the_numbers_of_their_shards(
    dim: str, positions: str, tmp_path: Path
):
    """The reference has the numbers of the whole tensor, and 3 divides no 50."""
    source = emitted(TYPES + PROGRAMS[positions], f"{RANKS}{{ranks=3 dim={dim}}}")
    (report,) = check_all({"shards": source}, tmp_path).values()
    assert report["ok"]
    assert report["max_error"] == 0


@pytest.mark.parametrize("plan", ["y: M=33; sum_n: N=1", "y: M=9; sum_n: N=4"])
def test_numbers_do_not_depend_on_tiles(plan: str, tmp_path: Path):
    tiled = f'fuse{{strategy=full}},tile{{factors="{plan}"}}'
    passes = f"decompose,{tiled},outline-kernels,lower-to-triton"
    source = emitted(TYPES + DROPOUT, f"{hardware('h200x1.yaml')},{passes}")
    (report,) = check_all({"tiled": source}, tmp_path).values()
    assert report["ok"], report


def test_kernels_with_random_numbers_compile(tmp_path: Path):
    sources = {"dropout": emitted(TYPES + DROPOUT, ONE_GPU)}
    usage = compile_all(sources, tmp_path)
    assert {str(kernel["target"]) for kernel in usage} == {"sm_90", "gfx942"}
    assert [kernel for kernel in usage if kernel["spills"]] == []
