"""Values that every rank has whole, and of which it loads its shard."""

from pathlib import Path

import pytest
from gpu_ranks import H200X8, SHARED_TEXTS
from programs import mesh_text
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import emitted
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import ScatterOp

TWO_READERS = """
func.func @main(%a: tensor<{extents}xf32, #compound.dims<{dims}>>)
    -> (tensor<{extents}xf32, #compound.dims<{dims}>>,
        tensor<{extents}xf32, #compound.dims<{dims}>>) {{
  %b = compound.map exp %a {{collective.shard = {{}}}} :
    tensor<{extents}xf32, #compound.dims<{dims}>>
    -> tensor<{extents}xf32, #compound.dims<{dims}>>
  %c = compound.map neg %b {{collective.shard = {{{split} = ["rank"]}}}} :
    tensor<{extents}xf32, #compound.dims<{dims}>>
    -> tensor<{extents}xf32, #compound.dims<{dims}>>
  func.return %b, %c : tensor<{extents}xf32, #compound.dims<{dims}>>,
    tensor<{extents}xf32, #compound.dims<{dims}>>
}}
"""
"""Every rank computes all of %b, and its shard of %c."""


def two_readers(split: str, *extents: int) -> str:
    """Return the program for a value of some extents, whose dimensions are D0, D1.."""
    dims = ", ".join(f"D{at}" for at in range(len(extents)))
    sizes = "x".join(map(str, extents))
    return TWO_READERS.format(extents=sizes, dims=dims, split=split)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (1, two_readers("D0", 3)),
        (3, two_readers("D0", 7)),
        (4, two_readers("D1", 3, 5)),
        (8, two_readers("D0", 5, 3)),
        (2, two_readers("D2", 2, 3, 5, 2)),
        (3, two_readers("D7", 1, 2, 1, 2, 1, 1, 3, 4)),
    ],
)
def test_a_scatter_becomes_a_gather_of_positions(ranks: int, text: str) -> None:
    before = parse_module(mesh_text({"rank": ranks}) + text)
    spmd = run_passes(before, "insert-collectives")
    assert any(isinstance(op, ScatterOp) for op in spmd.walk())
    after = run_passes(spmd, "lower-views")
    assert not any(isinstance(op, ScatterOp) for op in after.walk())
    assert_same_meaning(before, after, "main")


def test_the_new_dimension_has_a_name_of_its_own() -> None:
    text = two_readers("D0", 4, 5).replace("D1", "D0_shard")
    spmd = run_passes(parse_module(mesh_text({"rank": 2}) + text), "insert-collectives")
    assert "dims<D0_shard1>" in str(run_passes(spmd, "lower-views"))


def test_kernels_load_the_shard_of_their_rank(tmp_path: Path) -> None:
    parts = SHARED_TEXTS["gemm_all_reduce"].format(M=2, N=3, K=6)
    cases = {
        "rows": (two_readers("D0", 5, 6), "ranks=4"),
        "columns": (two_readers("D1", 3, 7), "ranks=2 pattern=pull"),
        "unequal_parts": (parts, 'ranks=2 split="K=3"'),
    }
    sources = {
        name: emitted(text, f"{H200X8},triton-distributed{{{options}}}")
        for name, (text, options) in cases.items()
    }
    assert "first_d0_shard = rank * D0_shard" in sources["rows"]
    assert outcomes(sources, tmp_path) == dict.fromkeys(sources, "right")


def test_shards_are_not_scattered_once_more() -> None:
    """Programs of a group would split the shard that a rank has of Q."""
    text = """
    func.func @main(%x: tensor<16x31xf16, #compound.dims<M, N>>)
        -> tensor<2x8x31xf16, #compound.dims<P, Q, N>> {
      %y = compound.rename %x split "M" : tensor<16x31xf16, #compound.dims<M, N>>
        -> tensor<2x8x31xf16, #compound.dims<P, Q, N>>
      func.return %y : tensor<2x8x31xf16, #compound.dims<P, Q, N>>
    }"""
    with pytest.raises(PassFailedException, match="do not carry out; choose shardings"):
        emitted(text, f"{H200X8},triton-distributed{{ranks=4 ctas=2 dim=Q}}")
