"""Kernels of several ranks that exchange nothing: those of one GPU, in all forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from covering import EVERY_CASE, some
from paths import ROOT
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import emitted, hardware
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.locality import is_local

SAMPLES = ROOT / "samples"
HEADS = (SAMPLES / "attention.mlir").read_text()
CAUSAL = (SAMPLES / "attention_causal.mlir").read_text()
FORMS = (
    "specialize=true",
    "copies=descriptors",
    "copies=descriptors stores=all",
    "persist=all",
    "copies=descriptors persist=all",
)


def on_ranks(program: str, ranks: int, options: str, strategy: str = "full") -> str:
    passes = f"triton-distributed{{ranks={ranks} strategy={strategy} {options}}}"
    return emitted(program, f"{hardware('h200x8.yaml')},{passes}")


def resized(program: str, heads: int, rows: int) -> str:
    """Return a sample of attention with fewer heads and queries, and 128 keys."""
    fewer = program.replace("x8x128x", f"x{heads}x{rows}x")
    return fewer.replace("x8x256x", f"x{heads}x128x")


def kernel_of(module: str) -> str:
    """Return the text of the only kernel of a module."""
    found = re.search(r"@triton.jit.*?(?=\n\n\n(?:def|class) )", module, re.DOTALL)
    assert found is not None
    return found.group()


@pytest.mark.parametrize("options", some(["", *FORMS], 2))
def test_a_shard_of_heads_has_the_kernel_of_one_gpu(options: str) -> None:
    """Eight ranks have one of the eight heads each."""
    passes = f"triton-distributed{{ranks=1 strategy=full {options}}}"
    one = emitted(HEADS.replace("x8x", "x1x"), f"{hardware('h200x1.yaml')},{passes}")
    assert kernel_of(on_ranks(HEADS, 8, f"dim=H {options}")) == kernel_of(one)


def test_large_heads_are_specialized_on_ranks_by_default() -> None:
    size = "4x32x4096x128xbf16"
    text = HEADS
    for found in re.findall(r"tensor<(1x8x\d+x\d+xf16)>", HEADS):
        text = text.replace(found, size)
    assert "warp_specialize=True" in on_ranks(text, 8, "dim=H")


@pytest.mark.parametrize("options", some(FORMS, 3))
def test_all_forms_are_right_on_ranks(options: str, tmp_path: Path) -> None:
    """
    Of causal attention, ranks have shards of queries, and positions in the whole.

    Each rank has two tiles of queries, and two of keys.
    """
    sources = {
        "unequal heads": on_ranks(
            resized(HEADS, heads=5, rows=32), 3, f"dim=H {options}"
        ),
        "queries": on_ranks(resized(CAUSAL, heads=2, rows=64), 2, f"dim=M {options}"),
    }
    found = outcomes(sources, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert set(found.values()) == {"right"}


def test_positions_in_the_whole_take_the_rank() -> None:
    kernel = kernel_of(on_ranks(CAUSAL, 4, "dim=M"))
    assert "first_m = rank * M" in kernel
    assert "heap_bases" not in kernel
    assert "rank" not in kernel_of(on_ranks(HEADS, 4, "dim=H"))


def test_no_descriptor_ends_with_a_shorter_shard() -> None:
    """Memory has as much for the last rank, and nobody has written its end."""
    options = "dim=H copies=descriptors"
    assert "make_tensor_descriptor" in on_ranks(HEADS, 4, options)
    assert "make_tensor_descriptor" not in on_ranks(HEADS, 3, options)


def kernels(sample: str, passes: str) -> dict[str, bool]:
    """Return which kernels of a program are local, by name."""
    module = run_passes(
        parse_module((SAMPLES / sample).read_text()),
        f"{hardware('h200x8.yaml')},{passes}",
    )
    found = (op for op in module.walk() if isinstance(op, KernelOp))
    return {kernel.sym_name.data: is_local(kernel) for kernel in found}


def test_what_exchanges_is_not_local() -> None:
    plan = "triton-distributed{ranks=8 to=dataflow"
    assert kernels("attention.mlir", f"{plan} dim=H}}") == {"attention_kernel": True}
    for pattern in ("bsp", "pull", "fused"):
        found = kernels("ag_gemm.mlir", f"{plan} pattern={pattern}}}")
        assert not any(found.values())


def test_neighbours_of_a_collective_are_not_local() -> None:
    """Before channels there are collectives, which are kernels of the plan."""
    found = kernels(
        "gemm_all_reduce.mlir",
        "select-ranks{ranks=8},decompose{accumulator=f32},insert-collectives,"
        "merge-collectives,place-collectives,lower-reductions,fuse,tile,outline-kernels",
    )
    assert len(found) > 2
    assert not any(found.values())


TWO_PRODUCTS = """
!a = tensor<16x512xf16, #compound.dims<M, K>>
!b = tensor<512x64xf16, #compound.dims<K, N>>
!c = tensor<16x64xf16, #compound.dims<M, N>>
func.func @main(
  %a: !a,
  %b: !b {collective.shard = {N = ["rank"]}},
  %d: !b {collective.shard = {N = ["rank"]}}
) -> (!c {collective.shard = {N = ["rank"]}}, !c {collective.shard = {N = ["rank"]}}) {
  %x = compound.contract %a, %b : !a, !b -> !c
  %y = compound.contract %a, %d : !a, !b -> !c
  func.return %x, %y : !c, !c
}
"""


def test_ranks_launch_independent_kernels_as_one(tmp_path: Path) -> None:
    text = on_ranks(TWO_PRODUCTS, 2, "launches=auto", "none")
    assert text.count("rank.launch(") == 1
    assert "heap_bases" not in text
    assert outcomes({"one": text}, tmp_path) == {"one": "right"}


def test_the_last_program_of_a_rank_merges_parts(tmp_path: Path) -> None:
    text = on_ranks(TWO_PRODUCTS, 2, 'split="K=4" merge=last', "none")
    assert text.count("rank.launch(") == 1
    assert text.count("= arrive_last(") == 2
    assert "heap_bases" not in text
    assert outcomes({"last": text}, tmp_path) == {"last": "right"}


def test_no_launch_is_on_two_sides_of_a_collective() -> None:
    with pytest.raises(PassFailedException, match="or a collective is between them"):
        on_ranks(BOTH_SIDES, 2, 'launches="main_y_kernel main_z_kernel"', "none")


BOTH_SIDES = """
!a = tensor<16x64xf16, #compound.dims<M, K>>
!b = tensor<64x32xf16, #compound.dims<K, N>>
!c = tensor<16x32xf16, #compound.dims<M, N>>
!x = tensor<32x64xf16, #compound.dims<P, K>>
!z = tensor<32x32xf16, #compound.dims<P, N>>
func.func @main(
  %a: !a, %b: !b, %x: !x {collective.shard = {P = ["rank"]}}
) -> (!c, !x, !z) {
  %y = compound.contract %a, %b : !a, !b -> !c
  %w = compound.map exp %x {collective.shard = {}} : !x -> !x
  %z = compound.contract %w, %b : !x, !b -> !z
  func.return %y, %w, %z : !c, !x, !z
}
"""
