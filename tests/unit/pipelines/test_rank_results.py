"""Functions whose results and arguments are no plain list of computed values."""

from pathlib import Path

import pytest
from covering import exhaustive, fraction, one_of
from gpu_ranks import H200X8
from rank_runs import outcomes
from semantics import parse_module
from triton_modules import emitted
from xdsl.utils.exceptions import PassFailedException

from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.decompose import keep_reference

A, B, C = "tensor<8x4xf32>", "tensor<4x6xf32>", "tensor<8x6xf32>"
MN = "tensor<8x4xf32, #compound.dims<M, N>>"
GEMM = f"%c = compound.gemm %a, %b : ({A}, {B}) -> {C}"
NAMED = {
    "returned argument": f"""
func.func @main(%a: {A}, %b: {B}) -> ({A}, {C}, {A}) {{
  {GEMM}
  func.return %a, %c, %a : {A}, {C}, {A}
}}""",
    "result twice": f"""
func.func @main(%a: {A}, %b: {B}) -> ({C}, {C}) {{
  {GEMM}
  func.return %c, %c : {C}, {C}
}}""",
    "unused argument": f"""
func.func @main(%a: {A}, %u: tensor<5x7xf32>, %b: {B}) -> {C} {{
  {GEMM}
  func.return %c : {C}
}}""",
    "whole and shared": """
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = compound.gemm %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %c : tensor<8x8xf32>
}""",
}
"""Of the graph level."""
ELEMENTARY = {
    "returned constant": f"""
func.func @main(%a: {MN}) -> ({MN}, {MN}) {{
  %f = compound.fill 2.0 : {MN}
  %e = compound.map exp %a : {MN} -> {MN}
  func.return %f, %e : {MN}, {MN}
}}""",
    "only an argument": f"""
func.func @main(%a: {MN}, %b: {MN}) -> {MN} {{
  %e = compound.map exp %a : {MN} -> {MN}
  func.return %b : {MN}
}}""",
    "beyond a narrow type": """
func.func @main(%a: tensor<8x4xf16, #compound.dims<M, N>>)
    -> tensor<8x4xf16, #compound.dims<M, N>> {
  %f = compound.fill 3.0e+38 : tensor<f32, #compound.dims<>>
  %c = compound.cast %f : tensor<f32, #compound.dims<>>
      -> tensor<f16, #compound.dims<>>
  %m = compound.map min %a, %c : tensor<8x4xf16, #compound.dims<M, N>>,
      tensor<f16, #compound.dims<>> -> tensor<8x4xf16, #compound.dims<M, N>>
  func.return %m : tensor<8x4xf16, #compound.dims<M, N>>
}""",
    "a number": """
func.func @main(%a: tensor<8x4xf32, #compound.dims<M, N>>)
    -> tensor<f32, #compound.dims<>> {
  %c = compound.reduce max %a : tensor<8x4xf32, #compound.dims<M, N>>
      -> tensor<f32, #compound.dims<>>
  %d = compound.map tanh %c : tensor<f32, #compound.dims<>>
      -> tensor<f32, #compound.dims<>>
  func.return %d : tensor<f32, #compound.dims<>>
}""",
}
OPTIONS = (
    "ranks=1 strategy=full",
    "ranks=2 dim=M strategy=none",
    "ranks=3 dim=N pattern=push strategy=partial",
)
GATHERED = """
func.func @main(%a: tensor<8x4xf32> {collective.shard = {K = ["rank"]}},
                %b: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
  %c = compound.ag_gemm %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  func.return %c, %a : tensor<8x6xf32>, tensor<8x4xf32>
}"""


def with_reference(text: str) -> str:
    """Return an elementary function and what it should compute."""
    module = parse_module(text)
    (function,) = compute_functions(module)
    keep_reference(module, function)
    return str(module)


def compiled(text: str, options: str) -> str:
    return emitted(text, f"{H200X8},triton-distributed{{{options}}}")


@exhaustive
def test_every_result_comes_back(tmp_path: Path) -> None:
    elementary = {name: with_reference(text) for name, text in ELEMENTARY.items()}
    sources = {
        f"{name}_{index}".replace(" ", "_"): compiled(text, options)
        for (name, text), (index, options) in fraction(
            (NAMED | elementary).items(), [*enumerate(OPTIONS)]
        )
    }
    sources["gathered"] = compiled(GATHERED, "ranks=2 pattern=pull")
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


def test_a_returned_input_does_not_lie_in_place() -> None:
    with pytest.raises(PassFailedException, match="inputs=symmetric does not apply"):
        compiled(GATHERED, "ranks=2 pattern=pull inputs=symmetric")


SHARED = {
    "positions": """
func.func @main(%a: tensor<17xf32, #compound.dims<M>>)
    -> tensor<f32, #compound.dims<>> {
  %i = compound.index : tensor<17xf32, #compound.dims<M>>
  %m = compound.reduce max %i : tensor<17xf32, #compound.dims<M>>
      -> tensor<f32, #compound.dims<>>
  func.return %m : tensor<f32, #compound.dims<>>
}""",
    "narrow sums": """
func.func @main(%a: tensor<16x5xbf16, #compound.dims<M, N>>)
    -> (tensor<5xbf16, #compound.dims<N>>, tensor<bf16, #compound.dims<>>) {
  %s = compound.reduce add %a : tensor<16x5xbf16, #compound.dims<M, N>>
      -> tensor<5xbf16, #compound.dims<N>>
  %n = compound.extent "M" of %a : tensor<16x5xbf16, #compound.dims<M, N>>
      -> tensor<bf16, #compound.dims<>>
  %c = compound.map mult %n, %n : tensor<bf16, #compound.dims<>>,
      tensor<bf16, #compound.dims<>> -> tensor<bf16, #compound.dims<>>
  func.return %s, %c : tensor<5xbf16, #compound.dims<N>>,
      tensor<bf16, #compound.dims<>>
}""",
    "a fold beside a sum": """
func.func @main(%a: tensor<1xf32, #compound.dims<M>>,
                %b: tensor<1xf32, #compound.dims<M>>)
    -> tensor<1xf32, #compound.dims<M>> {
  %v0 = compound.fill -3.0e+38 : tensor<f32, #compound.dims<>>
  %v1 = compound.fold over "M" ins(%a : tensor<1xf32, #compound.dims<M>>)
      init(%v0 : tensor<f32, #compound.dims<>>) step {
  ^bb0(%chunk: tensor<1xf32, #compound.dims<M>>, %old: tensor<f32, #compound.dims<>>):
    %now = compound.reduce max %chunk : tensor<1xf32, #compound.dims<M>>
        -> tensor<f32, #compound.dims<>>
    %new = compound.map max %old, %now : tensor<f32, #compound.dims<>>,
        tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } merge {
  ^bb1(%x: tensor<f32, #compound.dims<>>, %y: tensor<f32, #compound.dims<>>):
    %new = compound.map max %x, %y : tensor<f32, #compound.dims<>>,
        tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } -> tensor<f32, #compound.dims<>>
  %v3 = compound.reduce add %b : tensor<1xf32, #compound.dims<M>>
      -> tensor<f32, #compound.dims<>>
  %v4 = compound.map add %v3, %v1 : tensor<f32, #compound.dims<>>,
      tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
  %v5 = compound.map sub %b, %v4 : tensor<1xf32, #compound.dims<M>>,
      tensor<f32, #compound.dims<>> -> tensor<1xf32, #compound.dims<M>>
  func.return %v5 : tensor<1xf32, #compound.dims<M>>
}""",
}
"""Of the elementary level, without shardings."""


@one_of(2)
@pytest.mark.parametrize("name", SHARED)
def test_ranks_share_what_is_reduced(name: str, tmp_path: Path) -> None:
    text, options = with_reference(SHARED[name]), "ranks=3 dim=M strategy=none"
    sources = {"three": compiled(text, f"{options} pattern=push")}
    assert outcomes(sources, tmp_path, seeds=1) == {"three": "right"}
