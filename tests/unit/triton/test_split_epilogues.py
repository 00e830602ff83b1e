"""`split-epilogues`: subtiles mean the same, fit registers, and are legal."""

import re
from pathlib import Path

import pytest
from covering import one_of
from gpu_graphs import H200, SOFTMAX
from gpu_ranks import H200X8, MI300X8, SHARED_TEXTS
from semantics import parse_module, run_passes
from triton_modules import check_all, compile_all, emitted
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions

EPILOGUE = """
!a = tensor<{M}x{K}xbf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xbf16, #compound.dims<K, N>>
!c = tensor<{M}x{N}xbf16, #compound.dims<M, N>>
!f = tensor<{M}x{N}xf32, #compound.dims<M, N>>
func.func @f(%a: !a, %b: !b, %x: !c, %v: tensor<{N}xf32, #compound.dims<N>>,
             %r: tensor<{M}xf32, #compound.dims<M>>) -> (!c, !c) {{
  %p = compound.contract %a, %b : !a, !b -> !f
  %w = compound.cast %x : !c -> !f
  %e = compound.map exp %w : !f -> !f
  %early = compound.cast %e : !f -> !c
  %q = compound.map mult %p, %e : !f, !f -> !f
  %s = compound.map add %q, %v : !f, tensor<{N}xf32, #compound.dims<N>> -> !f
  %t = compound.map mult %s, %r : !f, tensor<{M}xf32, #compound.dims<M>> -> !f
  %y = compound.cast %t : !f -> !c
  func.return %early, %y : !c, !c
}}
"""
HEADS = """
!a = tensor<3x37x45xbf16, #compound.dims<H, M, K>>
!b = tensor<3x45x64xbf16, #compound.dims<H, K, N>>
!c = tensor<3x37x64xbf16, #compound.dims<H, M, N>>
!f = tensor<3x37x64xf32, #compound.dims<H, M, N>>
func.func @f(%a: !a, %b: !b, %x: !c) -> !c {
  %p = compound.contract %a, %b : !a, !b -> !f
  %w = compound.cast %x : !c -> !f
  %s = compound.map add %p, %w : !f, !f -> !f
  %y = compound.cast %s : !f -> !c
  func.return %y : !c
}
"""
GELU = """
!f = tensor<512x512xf32, #compound.dims<M, N>>
!c = tensor<512x512xbf16, #compound.dims<M, N>>
func.func @f(%a: tensor<512x256xbf16, #compound.dims<M, K>>,
             %b: tensor<256x512xbf16, #compound.dims<K, N>>,
             %v: tensor<512xf32, #compound.dims<N>>) -> (!c, !c) {
  %p = compound.contract %a, %b
      : tensor<512x256xbf16, #compound.dims<M, K>>,
        tensor<256x512xbf16, #compound.dims<K, N>> -> !f
  %w = compound.map add %p, %v : !f, tensor<512xf32, #compound.dims<N>> -> !f
  %half = compound.fill 0.5 : tensor<f32, #compound.dims<>>
  %root = compound.fill 0.70710678 : tensor<f32, #compound.dims<>>
  %one = compound.fill 1.0 : tensor<f32, #compound.dims<>>
  %k = compound.map mult %w, %root : !f, tensor<f32, #compound.dims<>> -> !f
  %e = compound.map erf %k : !f -> !f
  %d = compound.map add %e, %one : !f, tensor<f32, #compound.dims<>> -> !f
  %q = compound.map mult %w, %half : !f, tensor<f32, #compound.dims<>> -> !f
  %y = compound.map mult %q, %d : !f, !f -> !f
  %o = compound.cast %y : !f -> !c
  %before = compound.cast %w : !f -> !c
  func.return %o, %before : !c, !c
}
"""
"""GELU of a product with a bias, and what it is taken of: a layer in training."""

RESIDUAL = """
!c = tensor<2048x2048xbf16, #compound.dims<M, N>>
!f = tensor<2048x2048xf32, #compound.dims<M, N>>
!v = tensor<2048xf32, #compound.dims<N>>
func.func @f(%a: tensor<2048x1024xbf16, #compound.dims<M, K>>,
             %b: tensor<1024x2048xbf16, #compound.dims<K, N>>, %x: !c, %v: !v) -> !c {
  %p = compound.contract %a, %b
      : tensor<2048x1024xbf16, #compound.dims<M, K>>,
        tensor<1024x2048xbf16, #compound.dims<K, N>> -> !f
  %w = compound.map add %p, %v : !f, !v -> !f
  %wide = compound.cast %x : !c -> !f
  %s = compound.map add %w, %wide : !f, !f -> !f
  %y = compound.cast %s : !f -> !c
  func.return %y : !c
}
"""

TILES = 'strategy=full factors="early: M=3 N=2 warps={} stages=2 {}; p_k: K=3"'


def module(tiles: str, **extents: int) -> str:
    """Return the emitted module of the epilogue, in given tiles."""
    text = EPILOGUE.format(**extents)
    return emitted(text, f"{H200},triton-distributed{{{tiles}}}")


def test_meaning(tmp_path: Path):
    """Odd rows and terms, several programs, vectors of rows and of columns."""
    options = {1: "", 2: "", 4: "persist=all"}
    sources = {
        f"{count} subtiles": module(
            f"{TILES.format(4, f'group=2 subtiles={count}')} {other}", M=37, K=45, N=64
        )
        for count, other in options.items()
    }
    tiles = 'strategy=full factors="y: H=3 M=3 N=2 subtiles=2; p_k: K=3"'
    sources["heads"] = emitted(HEADS, f"{H200},triton-distributed{{{tiles}}}")
    for (name, source), count in zip(sources.items(), (*options, 2), strict=True):
        assert source.count("tl.split(") == count - 1, name
    for facts in check_all(sources, tmp_path).values():
        assert facts["ok"], facts


@one_of(2)
@pytest.mark.parametrize(
    ("text", "hardware", "target", "tiles"),
    [
        pytest.param(
            EPILOGUE.format(M=2048, K=1024, N=2048),
            H200,
            "sm_90",
            "early: M=16 N=8 warps=8 stages=3 group=8{}; p_k: K=16",
            id="sm_90",
        ),
        pytest.param(
            RESIDUAL,
            MI300X8,
            "gfx942",
            "y: M=8 N=8 warps=8 stages=2 group=8{}; p_k: K=32",
            id="gfx942",
        ),
    ],
)
def test_registers_suffice_with_the_subtiles_that_are_chosen(
    tmp_path: Path, text: str, hardware: str, target: str, tiles: str
):
    """A tile of 128 x 256 or 256 x 256 and what is computed beside it, compiled."""
    sources = {
        name: emitted(
            text,
            f"{hardware},triton-distributed{{ranks=1 strategy=full "
            f'factors="{tiles.format(subtiles)}"}}',
        )
        for name, subtiles in {"chosen": "", "whole": " subtiles=1"}.items()
    }
    assert "tl.split(" in sources["chosen"]
    chosen, whole = compile_all(sources, tmp_path, target)
    assert chosen["spills"] == 0
    assert whole["spills"] != 0


@one_of(3)
@pytest.mark.parametrize(
    "tiles",
    [
        "M=2 N=4 warps=8 stages=3",
        "M=4 N=4 warps=4 stages=3",
        "M=4 N=2 warps=8 stages=3",
    ],
)
def test_two_results_of_which_one_is_computed_of_the_other_are_both_alive(tiles: str):
    """As whole tiles they spilled 384, 360 and 296 bytes: Triton 3.6, sm_90."""
    plan = f'strategy=full factors="o: {tiles}; p_k: K=4"'
    assert "tl.split(" in emitted(GELU, f"{H200},triton-distributed{{{plan}}}")


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        pytest.param(
            EPILOGUE.format(M=64, K=64, N=96),
            TILES.format(4, "subtiles=2").replace("N=2", "N=1"),
            "2 subtiles do not divide its tiles of 96 of N",
            id="no power of two",
        ),
        pytest.param(
            EPILOGUE.format(M=64, K=64, N=64),
            TILES.format(4, "subtiles=64"),
            "64 subtiles do not divide its tiles of 32 of N",
            id="too many",
        ),
        pytest.param(
            SOFTMAX.format(M=64, N=64, K=32),
            'strategy=full factors="p: M=4 warps=4 stages=2 group=1 subtiles=2"',
            "no epilogue that subtiles divide",
            id="no product",
        ),
    ],
)
def test_subtiles_that_do_not_divide_a_kernel(text: str, options: str, reason: str):
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        emitted(text, f"{H200},triton-distributed{{{options}}}")


@pytest.mark.parametrize(
    ("machine", "text", "options"),
    [
        pytest.param(
            H200X8,
            SHARED_TEXTS["ag_gemm"].format(M=64, K=64, N=64),
            'ranks=2 pattern=bsp factors="c: M=1 N=1 subtiles=2"',
            id="ranks",
        ),
        pytest.param(
            H200,
            SOFTMAX.format(M=512, N=512, K=64),
            'ctas=2 dim=N factors="p: M=4 subtiles=2"',
            id="groups",
        ),
    ],
)
def test_programs_that_exchange_have_none(machine: str, text: str, options: str):
    with pytest.raises(PassFailedException, match="its programs exchange with others"):
        emitted(text, f"{machine},triton-distributed{{{options}}}")


ROTATION = """
!X = tensor<2048x4096xbf16, #compound.dims<M, D>>
!W = tensor<4096x4096xbf16, #compound.dims<D, N>>
!P = tensor<2048x4096xf32, #compound.dims<M, N>>
!R = tensor<2048x4096xbf16, #compound.dims<M, N>>
func.func @f(%x: !X, %w: !W, %v: !W, %c: !P, %s: !P) -> (!R, !R) {
  %p = compound.contract %x, %w : !X, !W -> !P
  %q = compound.contract %x, %v : !X, !W -> !P
  %pc = compound.map mult %p, %c : !P, !P -> !P
  %qs = compound.map mult %q, %s : !P, !P -> !P
  %qc = compound.map mult %q, %c : !P, !P -> !P
  %ps = compound.map mult %p, %s : !P, !P -> !P
  %a = compound.map sub %pc, %qs : !P, !P -> !P
  %b = compound.map add %qc, %ps : !P, !P -> !P
  %ab = compound.cast %a : !P -> !R
  %bb = compound.cast %b : !P -> !R
  func.return %ab, %bb : !R, !R
}
"""
"""Two products in one kernel, whose epilogue one GPU computes in subtiles."""


@pytest.mark.parametrize(("ranks", "divided"), [(1, True), (2, False)])
def test_kernels_of_several_ranks_choose_none(ranks: int, divided: bool):
    """Nor do the kernels by which `fuse` chooses."""
    dim = "" if ranks == 1 else "dim=M"
    options = f"ranks={ranks} {dim} strategy=full to=dataflow"
    passes = f"{H200X8},triton-distributed{{{options}}}"
    (function, *_) = compute_functions(run_passes(parse_module(ROTATION), passes))
    nodes = [op for op in function.walk() if isinstance(op, SpatialOp)]
    launches = [node.launch for node in nodes if node.launch is not None]
    assert launches
    assert any(launch.subtiles > 1 for launch in launches) == divided


def test_descriptors_do_not_store_subtiles():
    tiles = TILES.format(4, "group=2 subtiles=2")
    extents = {"M": 64, "K": 48, "N": 64}
    assert "_out.store(" not in module(f"{tiles} stores=all", **extents)
    with pytest.raises(PassFailedException, match="stores subtiles of its results"):
        module(f'{tiles} stores="f_kernel=2"', **extents)
