"""A loop that cuts the iter_args of a fold is outside of the fold's own loop."""

from pathlib import Path

from gpu_graphs import H200
from rank_runs import outcomes
from semantics import parse_module
from triton_modules import emitted

from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.decompose import keep_reference

T = "tensor<1x5x31xf32, #compound.dims<K, N, M>>"
R = "tensor<1x5xf32, #compound.dims<K, N>>"
SQUARED_SOFTMAX = f"""
func.func @f(%x: {T}) -> tensor<f32, #compound.dims<>> {{
  %m = compound.reduce max %x : {T} -> {R}
  %s = compound.map sub %x, %m : {T}, {R} -> {T}
  %e = compound.map exp %s : {T} -> {T}
  %l = compound.reduce add %e : {T} -> {R}
  %p = compound.map div %e, %l : {T}, {R} -> {T}
  %c = compound.contract %p, %p : {T}, {T} -> tensor<f32, #compound.dims<>>
  func.return %c : tensor<f32, #compound.dims<>>
}}"""
"""The product sums the rows as well as what the fold runs along."""


def test_rows_of_a_fold_are_summed(tmp_path: Path) -> None:
    module = parse_module(SQUARED_SOFTMAX)
    (function,) = compute_functions(module)
    keep_reference(module, function)
    sources = {
        strategy: emitted(
            str(module), f"{H200},triton-distributed{{strategy={strategy}}}"
        )
        for strategy in ("partial", "none")
    }
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")
