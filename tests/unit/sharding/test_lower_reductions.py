"""`lower-reductions`: meaning on every sample and mesh, and what remains after it."""

from itertools import product

import pytest
from covering import covering, one_of
from paths import ROOT, SAMPLES
from programs import MESHES, ODD_SIZES, graph_text, mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.collective import (
    AllGatherOp,
    AllToAllOp,
    CollectiveOp,
    ReduceScatterOp,
)
from comet.dialects.compound import CastOp, MapKind, MapOp, ReduceOp
from comet.dialects.compound.dims import bits_of, names_of

EXAMPLES = ROOT / "tests/filecheck/passes/sharding/lower-reductions.mlir"
RANKS = (1, 2, 3, 4, 8)
SHARED = (
    "ag_gemm",
    "expert_gemm",
    "flash_decode",
    "gemm_all_reduce",
    "gemm_reduce_scatter",
    "ring_attention",
)
MOVING = {"collective.all_gather", "collective.all_to_all"}


def remaining(module: ModuleOp) -> set[str]:
    """Return the names of the collectives in a module."""
    return {op.name for op in module.walk() if isinstance(op, CollectiveOp)}


@one_of(3)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", SHARED)
def test_samples(name: str, ranks: int):
    text = (SAMPLES / f"{name}.mlir").read_text()
    before = parse_module(mesh_text({"rank": ranks}) + text)
    passes = "decompose,stream,insert-collectives,place-collectives,lower-reductions"
    after = run_passes(before, passes)
    assert_same_meaning(before, after, name)
    assert remaining(after) <= MOVING


@one_of(2)
@pytest.mark.parametrize(
    ("op", "sizes", "axes", "dim", "stream"),
    covering(
        product(
            ("gemm_softmax", "gemm_layernorm"),
            *(ODD_SIZES, MESHES, "MKN", ("", "stream,")),
        ),
    ),
    ids=str,
)
def test_meaning(
    op: str, sizes: tuple[int, int, int], axes: dict[str, int], dim: str, stream: str
):
    before = parse_module(mesh_text(axes) + graph_text(op, sizes))
    distribute = f"distribute{{dim={dim} axes={','.join(axes)}}}"
    passes = f"decompose,{stream}{distribute},insert-collectives,lower-reductions"
    after = run_passes(before, passes)
    assert_same_meaning(before, after, "main")
    assert remaining(after) <= MOVING


@pytest.mark.parametrize("sizes", ODD_SIZES)
def test_two_reductions_of_different_axes(sizes: tuple[int, int, int]):
    """The product is partial over two axes, and is reduced over one after the other."""
    text = mesh_text({"x": 2, "y": 3}) + graph_text("gemm_softmax", sizes)
    passes = (
        "decompose,distribute{dim=K axes=x,y op=contract},"
        "distribute{dim=M axes=x op=reduce},insert-collectives,lower-reductions"
    )
    before = parse_module(text)
    assert_same_meaning(before, run_passes(before, passes), "main")


@pytest.mark.parametrize("ranks", RANKS)
def test_place_collectives_may_have_split_the_reduction(ranks: int):
    text = mesh_text({"rank": ranks}) + graph_text("gemm_softmax", (9, 5, 13))
    shared = (
        "decompose,distribute{dim=N axes=rank},insert-collectives,"
        "place-collectives{kind=reduce_scatter_all_gather}"
    )
    before = run_passes(parse_module(text), shared)
    assert any(isinstance(op, ReduceScatterOp) for op in before.walk())
    after = run_passes(before, "lower-reductions")
    assert_same_meaning(before, after, "main")
    assert remaining(after) == MOVING


@pytest.mark.parametrize("ranks", RANKS[1:])
@pytest.mark.parametrize("has_readers", [False, True])
def test_a_sum_is_cast_before_all_gather_it(ranks: int, has_readers: bool):
    """Where something else reads the sum, it is gathered as it is."""
    text = (SAMPLES / "gemm_all_reduce.mlir").read_text()
    shared = "insert-collectives,place-collectives{kind=reduce_scatter_all_gather}"
    before = run_passes(parse_module(mesh_text({"rank": ranks}) + text), "decompose")
    before = run_passes(before, shared)
    if has_readers:
        cast = next(op for op in before.walk() if isinstance(op, CastOp))
        Rewriter.insert_op(
            CastOp(cast.input, cast.result.type), InsertPoint.before(cast)
        )
    after = run_passes(before, "lower-reductions")
    assert_same_meaning(before, after, "gemm_all_reduce")
    (gather,) = (op for op in after.walk() if isinstance(op, AllGatherOp))
    assert bits_of(gather.input) == (32 if has_readers else 16)


@pytest.mark.parametrize(
    ("name", "has_readers", "terms", "bits"),
    [
        ("gemm_reduce_scatter", False, "narrow", 16),
        ("gemm_reduce_scatter", False, "wide", 32),
        ("gemm_all_reduce", False, "narrow", 16),
        ("gemm_all_reduce", True, "narrow", 32),
    ],
)
def test_terms_are_sent_as_their_sum_is_cast(
    name: str, has_readers: bool, terms: str, bits: int
):
    """Where something reads the sum as it is, terms are sent as they are."""
    text = (SAMPLES / f"{name}.mlir").read_text()
    before = parse_module(mesh_text({"rank": 4}) + text)
    before = run_passes(before, "decompose,insert-collectives,place-collectives")
    if has_readers:
        cast = next(op for op in before.walk() if isinstance(op, CastOp))
        Rewriter.insert_op(
            MapOp(MapKind.EXP, [cast.input], cast.input.type), InsertPoint.before(cast)
        )
    after = run_passes(before, f"lower-reductions{{terms={terms}}}")
    assert_same_meaning(before, after, name)
    (sent,) = (op for op in after.walk() if isinstance(op, AllGatherOp | AllToAllOp))
    (reduced,) = (op for op in after.walk() if isinstance(op, ReduceOp))
    assert bits_of(sent.result) == bits
    assert bits_of(reduced.input) == 32


def test_a_dimension_that_is_called_so_already():
    """Terms that have the name of the new dimension get another one."""
    kind = "tensor<4x6xf32, #compound.dims<M, rank_part>>"
    text = f"""
    collective.mesh @gpus {{rank = 2}}
    func.func @main(%x: tensor<4x3x6xf32, #compound.dims<M, N, rank_part>>) -> {kind} {{
      %y = compound.reduce add %x {{collective.shard = {{N = ["rank"]}}}}
        : tensor<4x3x6xf32, #compound.dims<M, N, rank_part>> -> {kind}
      func.return %y : {kind}
    }}"""
    before = parse_module(text)
    after = run_passes(before, "insert-collectives,lower-reductions")
    assert_same_meaning(before, after, "main")
    inner = [op for op in after.walk() if isinstance(op, ReduceOp)]
    assert names_of(inner[-1].input) == ("rank_part1", "M", "rank_part")


@pytest.mark.parametrize("name", ["P", "rank_part"])
def test_renamed_sums_mean_the_same(name: str):
    """The new dimension has a name that the rename does not give, either."""
    before = parse_module(
        EXAMPLES.read_text()
        .replace("<P>", f"<{name}>")
        .replace("{P = ", f"{{{name} = ")
    )
    after = run_passes(before, "lower-reductions")
    assert_same_meaning(before, after, "renamed")


def test_the_exchange_lies_where_the_reduction_did():
    text = mesh_text({"rank": 2}) + graph_text("gemm_softmax", (4, 3, 5))
    passes = (
        "decompose,distribute{dim=N axes=rank},insert-collectives,place-collectives,"
        "lower-reductions"
    )
    after = run_passes(parse_module(text), passes)
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert found
    for op in found:
        assert op.from_level is not None
        assert op.from_level.data == "HBM"
        assert op.algorithm is None
