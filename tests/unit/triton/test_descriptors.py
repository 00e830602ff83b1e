"""`use-descriptors`, `specialize-warps`: where they are legal, and the same tiles."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
import torch
from covering import exhaustive, one_of, some
from gpu_graphs import H200, SOFTMAX
from graph_text import Program
from named_ops import NAMED_OPS
from semantics import parse_module, run_passes
from triton_modules import check_all, compile_all, emitted

from comet.dialects.schedule import CopyOp
from comet.passes.search import session
from comet.passes.triton.use_descriptors import descriptor_axes
from comet.runtime.language import allow_descriptors

BY_DESCRIPTOR = f"{H200},triton-distributed{{strategy=full copies=descriptors}}"
UNTIL = (
    "outline-kernels,materialize-copies,hoist-copies,pad-blocks,map-grid,mask-copies,"
    "use-descriptors"
)
GEMM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
"""

FLAT = """
!q = tensor<2x4x256x64xf16>
!k = tensor<2x2x256x64xf16>
func.func @f(%q: !q, %k: !k, %v: !k) -> !q {
  %o = compound.attention %q, %k, %v causal : (!q, !k, !k) -> !q
  func.return %o : !q
}
"""
"""Two query heads share each of two heads of keys."""


def copied(extents: Mapping[str, int], factors: str) -> str:
    """Return the names of the operands of a product that descriptors copy."""
    tiles = f'tile{{factors="{factors}"}}'
    passes = f"{H200},decompose{{accumulator=f32}},fuse,{tiles},{UNTIL}"
    module = run_passes(parse_module(GEMM.format(**extents)), passes)
    copies = (op for op in module.walk() if isinstance(op, CopyOp))
    found = (str(op.result.name_hint)[0] for op in copies if op.descriptor)
    return "".join(found)


@one_of(2)
@pytest.mark.parametrize(
    ("extents", "factors", "names"),
    [
        ({"M": 64, "K": 64, "N": 64}, "c: M=2 N=2; c_k: K=2", "ab"),
        ({"M": 37, "K": 40, "N": 24}, "c: M=2 N=1; c_k: K=2", "ab"),
        ({"M": 37, "K": 41, "N": 24}, "c: M=2 N=1; c_k: K=2", "b"),
        ({"M": 37, "K": 40, "N": 25}, "c: M=2 N=1; c_k: K=2", "a"),
        # A block of 512 rows is more than a descriptor copies at a time.
        ({"M": 512, "K": 64, "N": 64}, "c: M=1 N=2; c_k: K=2", "b"),
    ],
)
def test_what_is_copied(extents: Mapping[str, int], factors: str, names: str):
    assert copied(extents, factors) == names


@exhaustive
def test_meaning(tmp_path: Path):
    """Odd extents whose rows begin at multiples of 16 bytes, in the interpreter."""
    sources = {
        "gemm": emitted(GEMM.format(M=37, K=40, N=72), BY_DESCRIPTOR),
        "softmax": emitted(SOFTMAX.format(M=37, K=24, N=152), BY_DESCRIPTOR),
    }
    for op in some(NAMED_OPS, 2):
        if op.name in ("attention", "expert_gemm"):
            extents = {dim: 2 if n < 4 else 8 * n - 8 for dim, n in op.odd.items()}
            extents |= {"HG": 4, "G": 2} if op.form else {}
            sources[op.title] = emitted(op.text(extents), BY_DESCRIPTOR)
    assert [name for name, source in sources.items() if ".load((" not in source] == []
    for facts in check_all(sources, tmp_path).values():
        assert facts["ok"], facts


def test_the_assembly_has_bulk_copies(tmp_path: Path):
    """Two of each block, one before the loop's pipeline and one in it, or more."""
    text = GEMM.format(M=512, K=512, N=512)
    sources = {
        copies: emitted(text, f"{H200},triton-distributed{{copies={copies}}}")
        for copies in ("descriptors", "pointers")
    }
    by_descriptor, by_pointer = compile_all(sources, tmp_path, "sm_90")
    bulk = by_descriptor["bulk"]
    assert isinstance(bulk, int)
    assert bulk >= 2
    assert by_pointer["bulk"] == 0
    assert by_descriptor["spills"] == 0
    assert not by_descriptor["slow"]


SPECIALIZED = (
    f"{H200},triton-distributed{{strategy=full split=none copies=descriptors "
    "specialize=true"
)
ATTENTION, CAUSAL = (
    next(op for op in NAMED_OPS if op.title == title)
    for title in ("attention", "attention_causal")
)


def test_specialized_loops(tmp_path: Path):
    """
    Some warps load, the others multiply: no spills, and the same meaning.

    The positions that the mask of causal attention compares are loaded by none. Query
    heads in one dimension are a view of a parameter. A loop with one product is left:
    it computed nothing finite on an H200.
    """
    extents = {"B": 2, "H": 2, "M": 256, "N": 256, "D": 64, "E": 64}
    attention = 'factors="y: B=2 H=2 M=2 warps=4 stages=2; m_n: N=2"'
    flat = 'factors="o: B=2 H=2 G=2 M=2 warps=4 stages=2; m_n: N=2"'
    gemm = 'factors="c: M=2 N=2 warps=4 stages=3; c_k: K=4"'
    sources = {
        "attention": emitted(ATTENTION.text(extents), f"{SPECIALIZED} {attention}}}"),
        "causal": emitted(CAUSAL.text(extents), f"{SPECIALIZED} {attention}}}"),
        "flat": emitted(FLAT, f"{SPECIALIZED} {flat}}}"),
        "gemm": emitted(GEMM.format(M=256, K=256, N=256), f"{SPECIALIZED} {gemm}}}"),
    }
    for name, source in sources.items():
        assert source.count("warp_specialize=True") == (name != "gemm")
    for facts in check_all(sources, tmp_path).values():
        assert facts["ok"], facts
    for facts in compile_all(sources, tmp_path, "sm_90"):
        assert facts["spills"] == 0
        assert not facts["slow"]


def test_a_compiler_that_ignores_producer_warps_is_noticed(tmp_path: Path):
    """Triton makes none for eight warps, and without `setmaxnreg` there are none."""
    extents = {"B": 2, "H": 2, "M": 256, "N": 256, "D": 64, "E": 64}
    factors = 'factors="y: B=2 H=2 M=2 warps=4 stages=2; m_n: N=2"'
    source = emitted(ATTENTION.text(extents), f"{SPECIALIZED} {factors}}}")
    wide = source.replace("num_warps=4", "num_warps=8")
    made, ignored = compile_all({"four": source, "eight": wide}, tmp_path, "sm_90")
    assert not made["slow"]
    (reason,) = cast(list[str], ignored["slow"])
    assert "warps that load what others multiply, and the compiler made none" in reason


@one_of(2)
@pytest.mark.parametrize(
    ("extents", "warps", "stages"),
    [({"M": 250}, 4, 2), ({"D": 60}, 4, 2), ({}, 8, 2), ({}, 4, 3)],
)
def test_loops_that_are_not_specialized(
    extents: Mapping[str, int], warps: int, stages: int
):
    """
    Rows of a head end in a block, rows begin anywhere, Triton ignores 8 warps, and
    what it computed with 3 stages was not finite.
    """
    sizes = {"B": 2, "H": 2, "M": 256, "N": 256, "D": 64, "E": 64, **extents}
    factors = f'factors="y: B=2 H=2 M=2 warps={warps} stages={stages}; m_n: N=2"'
    source = emitted(ATTENTION.text(sizes), f"{SPECIALIZED} {factors}}}")
    assert "warp_specialize" not in source


def test_a_loop_that_stores_is_not_specialized():
    """Triton 3.9 fails to compile it: the product of each iteration is a result."""
    p = Program({"M": 64, "D": 512, "F": 512}, "bf16", "f32")
    rows = p.argument("rows", "MD")
    stored = p.contract("stored", rows, p.argument("x", "MF"), "FD")
    summed = p.contract("summed", rows, p.argument("w", "FD"), "MF")
    factors = 'factors="stored_bf16: F=8 warps=4 stages=2; summed_d: D=8"'
    options = f'kernels="stored_bf16 summed_bf16" copies=descriptors {factors}'
    passes = f"{H200},triton-distributed{{specialize=true {options}}}"
    source = emitted(p.returning(stored, summed), passes)
    assert "_desc.load" in source
    assert "warp_specialize" not in source


def test_a_loop_that_reads_a_tile_loaded_before_it_is_not_specialized():
    """Triton 3.9 fails to compile it: row statistics, as in backward attention."""
    p = Program({"M": 32768, "N": 1024, "E": 64, "G": 64}, "bf16", "f32")
    scores = p.contract("scores", p.argument("q", "ME"), p.argument("k", "NE"), "MN")
    e = p.map("e", "exp", p.map("s", "sub", scores, p.argument("top", "M")))
    o = p.contract("o", e, p.argument("v", "NG"), "MG")
    factors = 'factors="o_bf16: M=256 warps=4 stages=2; o_n: N=8"'
    options = f"strategy=full copies=descriptors specialize=true {factors}"
    with session() as record:
        source = emitted(p.returning(o), f"{H200},triton-distributed{{{options}}}")
    assert "_desc.load" in source
    assert "warp_specialize" not in source
    limits = [row.limit for choice in record.choices for row in choice.rows]
    assert (
        "the loop @o_n reads %top, which pointers load before it, and Triton fails"
        in limits
    )


def test_a_plan_of_one_rank_allows_descriptors():
    """Counters of a merged reduction are memory of a plan, and not of a function."""
    p = Program({"M": 32, "K": 512, "N": 64, "J": 64}, "f16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    d = p.contract("d", c, p.argument("e", "NJ"), "MJ")
    options = 'strategy=none copies=descriptors split="K=4" merge=last'
    source = emitted(p.returning(d), f"{H200},triton-distributed{{{options}}}")
    assert "arrive_last(" in source
    assert "_desc.load" in source
    assert "        allow_descriptors(a=a, b=b, e=e)" in source


def test_an_unaligned_tensor_is_rejected():
    whole = torch.zeros(65, dtype=torch.float16)
    with pytest.raises(
        ValueError, match=r"b begins at no multiple of 16 bytes, .*b\.c"
    ):
        allow_descriptors(a=whole[:64], b=whole[1:])


@pytest.mark.parametrize(
    ("extents", "masked", "axes"),
    [
        ({"B": 4, "M": 100, "K": 64}, (), (("B", "M"), ("K",))),
        ({"B": 4, "M": 100, "K": 64}, ("M",), (("B",), ("M",), ("K",))),
        ({"B": 1, "M": 100, "K": 64}, ("M",), (("M",), ("K",))),
        ({"B": 2**16, "M": 2**15, "K": 64}, (), (("B",), ("M",), ("K",))),
    ],
)
def test_leading_dimensions_are_rows_where_an_index_can_count_them(
    extents: dict[str, int], masked: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
):
    assert descriptor_axes(extents, ("M", "K"), masked) == axes
