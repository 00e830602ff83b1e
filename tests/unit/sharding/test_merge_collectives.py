"""`merge-collectives`: meaning, what is left, and kernels of merged reductions."""

from pathlib import Path

import pytest
from covering import EVERY_CASE, exhaustive, one_of
from gpu_ranks import H200X8
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from sharded_programs import collectives
from triton_modules import emitted

SIZES = ((7, 5, 13), (1, 3, 17), (8, 16, 32))


def region(sizes: tuple[int, int, int], ranks: int, tail: str) -> str:
    """Return a residual to which two products of one gathered value are added."""
    m, k, n = sizes
    local_m, local_k = -(-m // ranks), -(-k // ranks)
    whole = f"tensor<{m}x{n}xf32, #compound.dims<M, N>>"
    shard = f"tensor<{local_m}x{n}xf32, #compound.dims<M, N>>"
    reduced = shard if tail == "scattered" else whole
    kind = 'reduce_scatter add "M"' if tail == "scattered" else "all_reduce add"
    begins = "%x" if tail == "scattered" else "%g"
    shards = '{M = ["rank"]}' if tail == "scattered" else "{}"
    weights = f"tensor<{n}x{k}xf32, #compound.dims<P, K>>"
    back = f"tensor<{k}x{n}xf32, #compound.dims<K, N>>"
    own = f"tensor<{n}x{local_k}xf32, #compound.dims<P, K>>"
    own_back = f"tensor<{local_k}x{n}xf32, #compound.dims<K, N>>"
    seen = f"tensor<{m}x{n}xf32, #compound.dims<M, P>>"
    hidden = f"tensor<{m}x{local_k}xf32, #compound.dims<M, K>>"
    gather = f'collective.all_gather "M" %x on @h200x8 ["rank"] : {shard} -> {whole}'
    branches = "\n".join(
        f"""
    %g{b} = {gather}
    %s{b} = compound.rename %g{b} : {whole} -> {seen}
    %h{b} = compound.contract %s{b}, %u : {seen}, {own} -> {hidden}
    %t{b} = compound.map tanh %h{b} : {hidden} -> {hidden}
    %c{b} = compound.contract %t{b}, %d : {hidden}, {own_back} -> {whole}
    %r{b} = collective.{kind} %c{b} on @h200x8 ["rank"] : {whole} -> {reduced}"""
        for b in "ab"
    )
    types = f"{whole}, {weights}, {back}"
    return f"""
func.func @f(%a: {whole}, %b: {weights}, %c: {back}) -> {whole} {{
  %z = collective.spmd on @h200x8 ins(%a, %b, %c : {types})
      sharded [{{M = ["rank"]}}, {{K = ["rank"]}}, {{K = ["rank"]}}]
      outs({whole}) sharded [{shards}] {{
  ^bb0(%x: {shard}, %u: {own}, %d: {own_back}):
    %g = {gather}
    {branches}
    %y = compound.map add {begins}, %ra : {reduced}, {reduced} -> {reduced}
    %w = compound.map add %rb, %y : {reduced}, {reduced} -> {reduced}
    collective.yield %w : {reduced}
  }}
  func.return %z : {whole}
}}"""


def reference(sizes: tuple[int, int, int]) -> str:
    """Return what the region means, on whole values."""
    m, k, n = sizes
    whole, seen, hidden = (
        f"tensor<{m}x{extent}xf32, #compound.dims<M, {dim}>>"
        for extent, dim in ((n, "N"), (n, "P"), (k, "K"))
    )
    weights = f"tensor<{n}x{k}xf32, #compound.dims<P, K>>"
    back = f"tensor<{k}x{n}xf32, #compound.dims<K, N>>"
    return f"""
func.func private @f__reference(%a: {whole}, %b: {weights}, %c: {back}) -> {whole}
    attributes {{comet.reference}} {{
  %s = compound.rename %a : {whole} -> {seen}
  %h = compound.contract %s, %b : {seen}, {weights} -> {hidden}
  %t = compound.map tanh %h : {hidden} -> {hidden}
  %d = compound.contract %t, %c : {hidden}, {back} -> {whole}
  %y = compound.map add %a, %d : {whole}, {whole} -> {whole}
  %w = compound.map add %y, %d : {whole}, {whole} -> {whole}
  func.return %w : {whole}
}}"""


def mesh(ranks: int) -> str:
    """Return the mesh of some of eight GPUs."""
    return f'collective.mesh @h200x8 {{rank = {ranks}}} at {{rank = "HBM"}}\n'


@one_of(4)
@pytest.mark.parametrize("tail", ["scattered", "whole"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_meaning_and_collectives(tail: str, ranks: int):
    kind = "reduce_scatter" if tail == "scattered" else "all_reduce"
    for sizes in SIZES:
        before = parse_module(mesh(ranks) + region(sizes, ranks, tail))
        after = run_passes(before, "merge-collectives")
        assert_same_meaning(before, after, "f")
        assert collectives(before) == [*["all_gather"] * 2, kind, "all_gather", kind]
        assert collectives(after) == ["all_gather", kind]


@exhaustive
@pytest.mark.parametrize("tail", ["scattered", "whole"])
def test_emitted_modules_are_right_on_the_scheduler(tail: str, tmp_path: Path):
    sizes, attach = SIZES[0], f"{H200X8},triton-distributed"
    sources = {
        f"{tail}_{ranks}_{pattern}": emitted(
            mesh(ranks) + region(sizes, ranks, tail) + reference(sizes),
            f"{attach}{{ranks={ranks} pattern={pattern} strategy=full}}",
        )
        for ranks, pattern in ((2, "bsp"), (4, "push"), (4, "fused"))
        if EVERY_CASE or (pattern == "push") == (tail == "whole")
    }
    assert set(outcomes(sources, tmp_path, seeds=1).values()) == {"right"}
