"""Every view along every axis, read by map, contraction and reduction, on GPUs."""

from pathlib import Path

import pytest
from covering import EVERY_CASE, covering, exhaustive, one_of, some
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from triton_modules import emitted, hardware, wrong
from view_programs import programs, reference

from comet.interpreter import run

PROGRAMS = dict(programs())
COVERED = [
    "_".join(each)
    for each in covering((tuple(name.split("_")) for name in PROGRAMS), 1)
]
SOME = {name: PROGRAMS[name] for name in COVERED}
"""Views of each kind, along each axis of each tensor."""
SEEN = ("_B_of_AB_computed", "_C_of_ABC_given")
"""The views that ranks read: the first of two, the second of four."""
DIMS = {2: "A", 4: "W"}
"""The dimension that so many ranks split."""


@one_of(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_printed_reference_means_what_the_interpreter_says(name: str):
    module = parse_module(PROGRAMS[name])
    inputs = random_inputs(module, "main")
    expected = reference(PROGRAMS[name])(*inputs)
    assert_close(list(expected), run(module, "main", inputs))


def test_lowered_views_mean_the_same():
    for text in PROGRAMS.values():
        before = parse_module(text)
        assert_same_meaning(before, run_passes(before, "lower-views"), "main")


FIRST_PART = """
!X = tensor<3x24xf32, #compound.dims<N, D>>
!S = tensor<3x8xf32, #compound.dims<N, D>>
!H = tensor<3x2x4xf32, #compound.dims<N, H, F>>
func.func @main(%a: !X) -> (!H, !H) {
  %x = compound.map exp %a : !X -> !X
  %s = compound.slice %x "D" [0, 8] : !X -> !S
  %h = compound.rename %s split "D" : !S -> !H
  %t = compound.slice %a "D" [0, 8] : !X -> !S
  %g = compound.rename %t split "D" : !S -> !H
  %y = compound.map exp %g : !H -> !H
  func.return %h, %y : !H, !H
}
"""
"""The rows of a slice that begins at 0 are as long as those of the whole."""


SELECTED = """
!X = tensor<3x5x4x24xf32, #compound.dims<N, P, H, D>>
!S = tensor<3x1x4x24xf32, #compound.dims<N, P, H, D>>
!T = tensor<3x4x24xf32, #compound.dims<N, H, D>>
!U = tensor<3x4x1xf32, #compound.dims<N, H, D>>
!V = tensor<3x4xf32, #compound.dims<N, H>>
!F = tensor<1x4xf32, #compound.dims<N, H>>
!G = tensor<4xf32, #compound.dims<H>>
!Y = tensor<3x4x4xf32, #compound.dims<N, H, E>>
!W = tensor<3x4x24xf32, #compound.dims<N, E, D>>
func.func @main(%a: !X, %b: !T) -> (!Y, !V, !G) {
  %x = compound.map exp %a : !X -> !X
  %s = compound.slice %x "P" [2, 1] : !X -> !S
  %t = compound.rename %s merge "P" : !S -> !T
  %q = compound.slice %x "P" [4, 1] : !X -> !S
  %r = compound.rename %q merge "N" : !S -> !W
  %y = compound.contract %t, %r : !T, !W -> !Y
  %u = compound.slice %b "D" [7, 1] : !T -> !U
  %v = compound.rename %u merge "H" : !U -> !V
  %z = compound.map exp %v : !V -> !V
  %f = compound.slice %v "N" [1, 1] : !V -> !F
  %g = compound.rename %f merge "N" : !F -> !G
  %e = compound.map exp %g : !G -> !G
  func.return %y, %z, %e : !Y, !V, !G
}
"""
"""Single positions of a dimension, which joins the one before it or after it."""


def test_a_single_position_is_read_where_it_is(tmp_path: Path):
    before = parse_module(SELECTED)
    after = run_passes(before, "lower-views")
    assert_same_meaning(before, after, "main")
    assert str(after).count("map copy") == 0
    one = f"{hardware('h200x1.yaml')},triton-distributed"
    assert not wrong({"selected": emitted(SELECTED, one)}, tmp_path)


def test_one_gpu_reads_views_along_every_axis(tmp_path: Path):
    one = f"{hardware('h200x1.yaml')},triton-distributed{{strategy=full}}"
    sources = {name: emitted(text, one) for name, text in some(SOME.items(), 2)}
    sources["first_part"] = emitted(FIRST_PART, one)
    assert not wrong(sources, tmp_path)


JOINED = """
!A = tensor<8x4x16xf32, #compound.dims<N, P, L>>
!ZERO = tensor<8x2x16xf32, #compound.dims<N, P, L>>
!C = tensor<8x6x16xf32, #compound.dims<N, P, L>>
!W = tensor<6x16x16xf32, #compound.dims<P, L, K>>
!Y = tensor<8x16xf32, #compound.dims<N, K>>
func.func @main(%a: !A, %b: !C, %w: !W) -> !Y {
  %zero = compound.fill 0.0 : !ZERO
  %c = compound.concat "P" %a, %zero : !A, !ZERO -> !C
  %s = compound.map add %b, %c : !C, !C -> !C
  %y = compound.contract %s, %w : !C, !W -> !Y
  func.return %y : !Y
}
"""
"""A product over what a loop reads one position of at a time, of two parts."""


def test_a_loop_over_single_positions_reads_parts(tmp_path: Path):
    passes = "triton-distributed{strategy=full}"
    text = emitted(JOINED, f"{hardware('h200x1.yaml')},{passes}")
    assert "for p in range(" in text
    assert not wrong({"joined": text}, tmp_path)


@exhaustive
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=exhaustive), 4])
def test_ranks_read_views(ranks: int, tmp_path: Path):
    dim = DIMS[ranks]
    passes = f"triton-distributed{{ranks={ranks} dim={dim} strategy=full}}"
    sources = {
        name: emitted(text, f"{hardware('h200x8.yaml')},{passes}")
        for name, text in PROGRAMS.items()
        if name.endswith(SEEN if EVERY_CASE else SEEN[ranks // 4])
    }
    assert not wrong(sources, tmp_path)


def test_ranks_split_what_a_slice_takes(tmp_path: Path):
    """The slice is of the whole value, and each rank loads its shard of the slice."""
    passes = "triton-distributed{ranks=2 dim=A}"
    text = PROGRAMS["sliced_A_of_AB_given"]
    source = emitted(text, f"{hardware('h200x8.yaml')},{passes}")
    assert "first_a_shard = rank * A_shard" in source
    assert not wrong({"sliced": source}, tmp_path)


SHARD_AND_PART = """
!M = tensor<7xf32, #compound.dims<M>>
!PART = tensor<2xf32, #compound.dims<M>>
func.func @main(%x: !M, %y: !M) -> (!M, !PART) {
  %s = compound.slice %y "M" [4, 2] : !M -> !PART
  %t = compound.map exp %s {collective.shard = {}} : !PART -> !PART
  %e = compound.map exp %x {collective.shard = {M = ["rank"]}} : !M -> !M
  func.return %e, %t : !M, !PART
}
"""
"""Shards of four ranks have 2 elements of M, the last has 1; %s has 2, on all ranks."""


def test_unequal_shards_and_a_part_are_in_two_kernels(tmp_path: Path):
    passes = "triton-distributed{ranks=4 strategy=full}"
    text = emitted(SHARD_AND_PART, f"{hardware('h200x8.yaml')},{passes}")
    assert text.count("rank.launch(") == 2
    assert wrong({"two kernels": text}, tmp_path) == []
