"""`fuse{kernels=..}`: the values that each kernel of a graph stores, by hand."""

import pytest
from covering import one_of
from gpu_graphs import H200, kernels
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import WIDE, llama_block, norm_and_mlp
from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.strategy import KERNELS
from comet.passes.schedule.plan_string import PLAN


def test_the_chosen_kernels_can_be_given():
    text = norm_and_mlp(WIDE, "bf16")
    start = f"{H200},sink-renames,stream"
    chosen = run_passes(parse_module(text), f"{start},fuse{{strategy=priority}}")
    (func,) = compute_functions(chosen)
    said = func.attributes[KERNELS]
    assert isinstance(said, StringAttr)
    again = run_passes(parse_module(text), f'{start},fuse{{kernels="{said.data}"}}')
    (other,) = compute_functions(again)
    assert [str(op) for op in func.body.block.ops] == [
        str(op) for op in other.body.block.ops
    ]
    assert func.attributes[PLAN] == other.attributes[PLAN]


@one_of(2)
@pytest.mark.parametrize("given", ["z", "h; z", "h; gated; z", "h_scale gate; z"])
def test_given_kernels_recompute_what_none_stores(given: str):
    before = parse_module(norm_and_mlp())
    after = run_passes(before, f'{H200},stream,fuse{{kernels="{given}"}},tile')
    nodes = [op for op in after.walk() if isinstance(op, SpatialOp)]
    assert len(nodes) == given.count(";") + 1
    assert_same_meaning(before, after, "main")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("h,z", "a comma in 'h,z'; write a space between values of one kernel, and"),
        ("h; zz", "names %zz, which no op computes; values are called z and so on"),
        ("z; z", "stores %z twice; name it in one kernel"),
        ("h", "does not store %z, which is a result, or is renamed or sent; name it"),
        ("h_sq; h_mean h_sum z; h_scale", "has two that depend on each other; store a"),
    ],
)
def test_kernels_that_cannot_be_are_rejected(given: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(norm_and_mlp()), f'{H200},fuse{{kernels="{given}"}}')


def test_all_names_are_said_where_there_are_few():
    type_ = "tensor<8xf32, #compound.dims<M>>"
    text = f"""func.func @main(%x: {type_}) -> {type_} {{
      %y = compound.map neg %x : {type_} -> {type_}
      func.return %y : {type_}
    }}"""
    with pytest.raises(PassFailedException, match=r"values are called y$"):
        run_passes(parse_module(text), f'{H200},fuse{{kernels="v"}}')


def test_results_of_one_op_are_in_one_given_kernel():
    with pytest.raises(PassFailedException, match="%weights_l in two kernels, and one"):
        kernels(llama_block(), 'kernels="q k; v; weights_m; weights_l; z"')


def test_given_kernels_that_do_not_fit_are_rejected():
    """Scores, softmax and values of all heads at once: no tiles fit."""
    with pytest.raises(PassFailedException, match="more than fit beside"):
        kernels(llama_block(WIDE, "bf16"), 'kernels="q k v; z"')


def test_given_kernels_whose_products_are_no_dots_are_rejected():
    """Queries of R heads and keys of one: a program would take R by M rows."""
    p = Program({"M": 32, "D": 128, "K": 2, "R": 2, "E": 16})
    h = p.argument("h", "MD")
    q = p.contract("q", h, p.argument("wq", "DKRE"), "KRME")
    text = p.returning(q, p.contract("k", h, p.argument("wk", "DKE"), "KME"))
    with pytest.raises(PassFailedException, match=r"large enough for tl\.dot, but"):
        kernels(text, 'kernels="q k"')


def test_given_kernels_with_a_vector_that_no_dot_can_pad_are_rejected():
    """The token of a sequence, and the keys of each sequence."""
    p = Program({"B": 1, "D": 128, "N": 64, "R": 16, "G": 16}, "bf16", "f32")
    v = p.contract("v", p.argument("h", "BD"), p.argument("w", "DG"), "BG")
    rows, values = p.argument("u", "BRN"), p.argument("values", "BNG")
    text = p.returning(p.map("z", "mult", p.contract("y", rows, values, "BRG"), v))
    with pytest.raises(PassFailedException, match="a vector that cannot be padded"):
        kernels(text, 'kernels="z_bf16"')
    kernels(text, 'kernels="v; z_bf16"')


def test_options_of_the_other_kind_of_machine_are_rejected():
    edge, text = 'attach-hardware{path="samples/hardware/edge.yaml"}', norm_and_mlp()
    for hardware, option, kind in (
        (edge, "kernels=z", "GPUs"),
        (edge, "narrow=z", "GPUs"),
        (H200, "chunks=root", "accelerators"),
    ):
        name = option.partition("=")[0]
        with pytest.raises(PassFailedException, match=rf"{name}=\.\. is for {kind}"):
            run_passes(parse_module(text), f"{hardware},fuse{{{option}}}")


ONE_COLUMN = """
!x = tensor<8x1xf32, #compound.dims<N, M>>
!row = tensor<8xf32, #compound.dims<N>>
func.func @main(
  %x: !x {collective.shard = {M = ["rank"]}}, %z: !x
) -> (!x {collective.shard = {M = ["rank"]}}, !row) {
  %y = compound.map neg %x : !x -> !x
  %r = compound.reduce add %z : !x -> !row
  func.return %y, %r : !x, !row
}
"""


def test_a_shard_and_the_whole_of_a_dimension_are_two_kernels():
    """Also of one element, where they have one extent; a kernel of both is rejected."""
    passes = (
        'attach-hardware{path="samples/hardware/h200x8.yaml"},select-ranks{ranks=2},'
        "propagate-shardings,insert-collectives"
    )
    sharded = run_passes(parse_module(ONE_COLUMN), passes)
    for strategy in ("full", "none", "partial", "priority"):
        after = run_passes(sharded, f"fuse{{strategy={strategy}}}")
        assert sum(isinstance(op, SpatialOp) for op in after.walk()) == 2
    run_passes(sharded, 'fuse{kernels="y; r"}')
    with pytest.raises(PassFailedException, match="a shard and the whole of one;"):
        run_passes(sharded, 'fuse{kernels="y r"}')
