"""Programs that exchange in groups, on one GPU or several: functions and pipeline."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from covering import EVERY_CASE
from gpu_ranks import H200X8, TEXTS
from rank_runs import Room, outcomes_in
from triton_modules import emitted, hardware

H200 = hardware("h200x1.yaml")
SIZES = {"M": 37, "N": 43, "K": 19}
"""Ragged for groups of 2, 3 and 4, and for blocks of 16."""

MASKED = """
!a = tensor<{M}x{K}xf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xf16, #compound.dims<K, N>>
!g = tensor<{N}xf32, #compound.dims<N>>
!x = tensor<{M}x{N}xf16, #compound.dims<M, N>>
!m = tensor<{M}xi32, #compound.dims<M>>
!n = tensor<{N}xi32, #compound.dims<N>>
!c = tensor<{M}x{N}xi1, #compound.dims<M, N>>
!w = tensor<{M}x{N}xf32, #compound.dims<M, N>>
!r = tensor<{M}xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @f(%a: !a, %b: !b, %g: !g, %x: !x) -> !x {{
  %p = compound.contract %a, %b : !a, !b -> !w
  %wide = compound.cast %x : !x -> !w
  %added = compound.map add %p, %wide : !w, !w -> !w
  %biased = compound.map add %added, %g : !w, !g -> !w
  %m = compound.index : !m
  %n = compound.index : !n
  %seen = compound.map ge %m, %n : !m, !n -> !c
  %low = compound.fill -1.0e+30 : !s
  %scores = compound.map select %seen, %biased, %low : !c, !w, !s -> !w
  %top = compound.reduce max %scores : !w -> !r
  %below = compound.map sub %scores, %top : !w, !r -> !w
  %e = compound.map exp %below : !w -> !w
  %l = compound.reduce add %e : !w -> !r
  %q = compound.map div %e, %l : !w, !r -> !w
  %y = compound.cast %q : !w -> !x
  func.return %y : !x
}}
"""
"""
Softmax of a product with a residual and a bias, of positions up to each row's: what
comes before the exchange reads values along the row.
"""
GROUP_TEXTS = {**TEXTS, "masked": MASKED}


def grouped(
    name: str, ctas: int, options: str = "", ranks: int = 1, rows: int = SIZES["M"]
) -> str:
    """Return the emitted module of one of `GROUP_TEXTS` for groups of programs."""
    text = GROUP_TEXTS[name].format(**{**SIZES, "M": rows})
    how = f"ctas={ctas} {options}"
    if ranks == 1:
        return emitted(text, f"{H200},triton-distributed{{{how}}}")
    return emitted(text, f"{H200X8},triton-distributed{{ranks={ranks} {how}}}")


ROOMS: Sequence[Room] = ((0, None), (1, 4), (2, None))[: None if EVERY_CASE else 2]

Mutation: TypeAlias = tuple[str, str, set[str]]
"""A part of an emitted module, what replaces it, and the failures that may follow."""


def run_mutations(
    sources: Mapping[str, str], of: str, mutations: Mapping[str, Mutation], folder: Path
) -> dict[str, str]:
    """Return what became of emitted modules, and of the mutations of the one `of`."""
    every = dict(sources)
    for name, (old, new, _) in mutations.items():
        assert old in sources[of], name
        every[name] = sources[of].replace(old, new)
    numbered = {f"module_{i}": source for i, source in enumerate(every.values())}
    became = outcomes_in(numbered, folder, ROOMS)
    return dict(zip(every, became.values(), strict=True))
