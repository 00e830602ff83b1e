"""The option `dim` of both pipelines: which dimensions take which mesh axes."""

from collections.abc import Mapping

import pytest
from covering import one_of
from gpu_ranks import H200X8
from named_ops import HEADS_EVEN, NAMED_OPS
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import GRAPHS
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import IndexOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.sharding.dim_axes import (
    DimAxes,
    ShardedDim,
    assign_axes,
    format_dims,
    parse_dims,
)
from comet.passes.sharding.shardings import select_mesh

EDGE = hardware("edge.yaml")
ATTENTION = next(op for op in NAMED_OPS if op.title == "attention")
ALL, REST = ("cx", "cy", "kx", "ky"), ("cy", "kx", "ky")


def elementary(text: str) -> ModuleOp:
    return run_passes(parse_module(text), f"{EDGE},decompose{{accumulator=input}}")


def sharded_dims(
    module: ModuleOp, option: str, *, uneven: bool = False
) -> tuple[ShardedDim, ...]:
    mesh = select_mesh("test", module, None)
    return assign_axes("test", module, mesh, parse_dims((option,)), uneven=uneven)


def test_names_and_axes_may_be_mixed():
    assert parse_dims(("H", "M")) == (DimAxes("H"), DimAxes("M"))
    assert parse_dims(("M:cx", " cy; N:kx", "ky", "ky2 ; H", "B")) == (
        DimAxes("M", ("cx", "cy")),
        DimAxes("N", ("kx", "ky", "ky2")),
        DimAxes("H"),
        DimAxes("B"),
    )


def test_axes_may_be_used_in_part():
    (entry,) = parse_dims(("M:cx = 2", "cy"))
    assert entry == DimAxes("M", ("cx", "cy"), (("cx", 2),))
    assert format_dims((entry, DimAxes("N"))) == "M:cx=2,cy;N"


def test_an_empty_text_names_no_dimension():
    assert parse_dims(("",)) == ()


@pytest.mark.parametrize(
    "text",
    [
        *("M;", "M:", ":cx", "M,N:cx", "M:cx,", "M:cx:cy", "2", "M N", "M=cx"),
        *("M:cx=0", "M:cx=-1", "M:cx=ky"),
    ],
)
def test_another_form_is_rejected(text: str):
    with pytest.raises(PassFailedException, match="the option 'dim' names dimensions"):
        parse_dims(tuple(text.split(",")))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("M,M", "dimension M"),
        ("M:cx;M:cy", "dimension M"),
        ("M:cx;N:cy,cx", "axis cx"),
        ("M:cx,cx", "axis cx"),
        ("M:cx=2;N:cx", "axis cx"),
    ],
)
def test_what_is_named_twice_is_rejected(text: str, what: str):
    with pytest.raises(PassFailedException, match=f"names the {what} twice"):
        parse_dims((text,))


@pytest.mark.parametrize(
    ("n", "axes"),
    [
        (64, ALL),
        (8, ("cx", "cy", "kx")),
        (12, ("cx", "cy")),
        (6, ("cx",)),
        (13, ()),
        (1, ()),
    ],
)
def test_axes_are_dropped_from_the_innermost_on(n: int, axes: tuple[str, ...]):
    module = elementary(graph_text("gemm_softmax", (8, 4, n)))
    assert sharded_dims(module, "N") == ((("N", axes),) if axes else ())
    assert sharded_dims(module, "N", uneven=True) == (("N", ALL),)


def test_every_extent_of_the_dimension_counts():
    module = elementary(graph_text("gemm_softmax", (8, 4, 64)))
    narrow = elementary(graph_text("gemm_softmax", (8, 4, 12)))
    other = next(iter(compute_functions(narrow)))
    other.detach()
    module.body.block.add_op(other)
    assert sharded_dims(module, "N") == (("N", ("cx", "cy")),)


@pytest.mark.parametrize(
    ("option", "extents", "expected"),
    [
        ("H,M", HEADS_EVEN, (("H", ("cx", "cy")), ("M", ("kx", "ky")))),
        ("B,H,M", HEADS_EVEN | {"H": 6}, (("H", ("cx",)), ("M", REST))),
        ("M", HEADS_EVEN | {"M": 3}, ()),
        ("H;M:cx,cy", HEADS_EVEN, (("H", ("kx", "ky")), ("M", ("cx", "cy")))),
        ("H:ky;M:kx", HEADS_EVEN, (("H", ("ky",)), ("M", ("kx",)))),
    ],
)
def test_dimensions_share_the_axes_in_turn(
    option: str, extents: Mapping[str, int], expected: tuple[ShardedDim, ...]
):
    assert sharded_dims(elementary(ATTENTION.text(extents)), option) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("N:cz", "mesh @edge has no axis 'cz'; its axes are cx, cy, kx, ky"),
        ("N:cx,cy,kx,ky", "the 16 instances along cx, cy, kx, ky do not divide N = 8"),
        ("N:cz=2", "in the option 'dim': mesh @edge has no axis 'cz'"),
        ("N:cx=3", "the axis cx has 2 instances and not 3; use fewer"),
        ("Q:cx", "there is no dimension Q to shard; there are M, K, N; name them"),
    ],
)
def test_what_the_mesh_or_the_program_lacks_is_rejected(option: str, message: str):
    text = graph_text("gemm_softmax", (8, 4, 8))
    with pytest.raises(PassFailedException, match=f"comet-accelerator: .*{message}"):
        run_passes(parse_module(text), f'{EDGE},comet-accelerator{{dim="{option}"}}')


def test_a_program_without_dimensions_has_none_to_share():
    number = "tensor<f32, #compound.dims<>>"
    text = f"""func.func @f(%a: {number}) -> {number} {{
  %b = compound.map neg %a : {number} -> {number}
  func.return %b : {number}
}}"""
    with pytest.raises(PassFailedException, match="the program has none"):
        sharded_dims(elementary(text), "M")


def test_both_pipelines_take_axes():
    text = graph_text("gemm_softmax", (8, 4, 16))
    options = 'dim="M:cx,cy;N:kx,ky" strategy=full stream=false'
    mapped = run_passes(parse_module(text), f"{EDGE},comet-accelerator{{{options}}}")
    by_hand = (
        "decompose{accumulator=input},distribute{dim=M axes=cx,cy},"
        "distribute{dim=N axes=kx,ky},insert-collectives,"
        "place-collectives{at=GB kind=auto},fuse{strategy=full chunks=auto},tile,bind,"
        "annotate-cost,lower-to-comet"
    )
    assert str(mapped) == str(run_passes(parse_module(text), f"{EDGE},{by_hand}"))
    ranks = "triton-distributed{{ranks=2 to=dataflow dim={}}}"
    named, plain = (
        run_passes(parse_module(text), f"{H200X8},{ranks.format(dim)}")
        for dim in ('"M:rank"', "M")
    )
    assert str(named) == str(plain)


def test_gpus_are_not_used_in_part_by_a_dimension():
    pipeline = f'{H200X8},triton-distributed{{ranks=4 to=dataflow dim="M:rank=2"}}'
    message = "uses a part of an axis, rank=2; GPUs use all of it: say .* with 'ranks'"
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(graph_text("gemm_softmax", (8, 4, 16))), pipeline)


@one_of(2)
@pytest.mark.parametrize(("sizes", "dim"), [((6, 4, 8), "M"), ((7, 4, 9), "N")])
def test_ranks_share_the_first_dimension_that_they_divide(
    sizes: tuple[int, int, int], dim: str
):
    text = graph_text("gemm_softmax", sizes)
    ranks = "triton-distributed{{ranks=2 to=dataflow dim={}}}"
    several, one = (
        run_passes(parse_module(text), f"{H200X8},{ranks.format(option)}")
        for option in ("M,N", dim)
    )
    assert str(several) == str(one)
    assert_same_meaning(parse_module(text), several, "main")


@one_of(2)
@pytest.mark.parametrize("name", ["llama_block", "gpt2_block"])
def test_ranks_share_a_dimension_of_which_some_ops_have_the_whole(name: str):
    module = parse_module(GRAPHS[name])
    after = run_passes(
        module, f"{H200X8},triton-distributed{{ranks=2 dim=N to=dataflow}}"
    )
    assert any(isinstance(op, IndexOp) and op.axis_names for op in after.walk())
    assert_same_meaning(module, after, "main")
