"""`split`: the same meaning for any parts, on one rank and on several, and errors."""

import random
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from covering import EVERY_CASE, covering, one_of
from graph_text import Program
from named_ops import NAMED_OPS, NamedOp
from programs import mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import softmax
from trees import random_tree
from triton_modules import check_all, emitted, hardware
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import AllGatherOp, CollectiveOp
from comet.dialects.compound import ContractOp, FoldOp, MapOp, ReduceOp, RenameOp
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.split import SplitPass
from comet.passes.graph.split.choose import (
    Products,
    Trials,
    products_by_operand,
    shares_accumulator,
)
from comet.passes.graph.split.products import products_of
from comet.passes.graph.split.trials import described, products_alone
from comet.passes.pipelines.triton_distributed.options import parse_splits

RANKS = (1, 2, 3, 4, 8)
REDUCED = [
    (op, dim)
    for op in NAMED_OPS
    for dim in op.odd
    if dim not in (*op.result, *op.factors)
]


@one_of(3)
@pytest.mark.parametrize(
    ("op", "dim", "parts", "stream"),
    [
        (op, dim, parts, stream)
        for index, (op, dim) in enumerate(REDUCED)
        for number, (parts, stream) in enumerate(product((1, 3, 12), ("", "stream,")))
        if EVERY_CASE or (index + number + number // 2) % 2 == 0
    ],
    ids=lambda part: getattr(part, "title", part),
)
def test_named_ops(op: NamedOp, dim: str, parts: int, stream: str):
    before = parse_module(op.text({**op.odd, dim: 12}))
    after = run_passes(before, f"decompose,{stream}split{{dim={dim} parts={parts}}}")
    tree = partial(random_tree, generator=random.Random(parts))
    assert_same_meaning(before, after, "main", chunks=tree)


STATISTICS = """
func.func @main(%x: tensor<3x12xf32, #compound.dims<M, N>>)
    -> (tensor<3xf32, #compound.dims<M>>, tensor<3xf32, #compound.dims<M>>) {
  %inverse_n = compound.fill 0.08333333333333333 : tensor<f32, #compound.dims<>>
  %sum = compound.reduce add %x
    : tensor<3x12xf32, #compound.dims<M, N>> -> tensor<3xf32, #compound.dims<M>>
  %mean = compound.map mult %sum, %inverse_n : tensor<3xf32, #compound.dims<M>>,
    tensor<f32, #compound.dims<>> -> tensor<3xf32, #compound.dims<M>>
  %centred = compound.map sub %x, %mean : tensor<3x12xf32, #compound.dims<M, N>>,
    tensor<3xf32, #compound.dims<M>> -> tensor<3x12xf32, #compound.dims<M, N>>
  %square = compound.map mult %centred, %centred
    : tensor<3x12xf32, #compound.dims<M, N>>, tensor<3x12xf32, #compound.dims<M, N>>
    -> tensor<3x12xf32, #compound.dims<M, N>>
  %squares = compound.reduce add %square
    : tensor<3x12xf32, #compound.dims<M, N>> -> tensor<3xf32, #compound.dims<M>>
  func.return %mean, %squares
    : tensor<3xf32, #compound.dims<M>>, tensor<3xf32, #compound.dims<M>>
}
"""


@pytest.mark.parametrize(
    ("parts", "stream", "ranks"),
    covering(product((1, 2, 4, 6), ("", "stream,"), RANKS), 1),
)
def test_mean_and_variance(parts: int, stream: str, ranks: int):
    """The count of a running mean has no dimension, and one per part afterwards."""
    before = parse_module(mesh_text({"rank": ranks}) + STATISTICS)
    split = f"{stream}split{{dim=N parts={parts}}}"
    assert_same_meaning(before, run_passes(before, split), "main")
    shared = "distribute{dim=N_part axes=rank},insert-collectives"
    assert_same_meaning(before, run_passes(before, f"{split},{shared}"), "main")
    early = f"distribute{{dim=N axes=rank}},{split},insert-collectives"
    assert_same_meaning(before, run_passes(before, early), "main")


UNKNOWN = """
collective.mesh @mesh {rank = 2}
!X = tensor<3x12xf32, #compound.dims<M, N>>
!C = tensor<3x1xf32, #compound.dims<M, N>>
!M = tensor<3xf32, #compound.dims<M>>
func.func @main(%x: !X) -> (!M, !M) {
  %low = compound.fill -1.0e30 : !M
  %zero = compound.fill 0.0 : !M
  %one = compound.fill 1.0 : !M
  %m, %n = compound.fold over "N" ins(%x : !X) init(%low, %zero : !M, !M) CHUNK
    %top = compound.reduce max %c : CHUNKTYPE -> !M
    %now = compound.map max %old, %top : !M, !M -> !M
    compound.yield %now, %one : !M, !M
  } merge {
  ^bb1(%p: !M, %q: !M, %r: !M, %s: !M):
    %now = compound.map max %p, %r : !M, !M -> !M
    compound.yield %now, %one : !M, !M
  } -> !M, !M
  func.return %m, %n : !M, !M
}
"""


@pytest.mark.parametrize("chunk", ["!X", "!C"])
@pytest.mark.parametrize("parts", [2, 3])
def test_a_fold_of_no_known_form(parts: int, chunk: str):
    """Its partials are merged one by one; a yielded constant is spread over parts."""
    head = f"step {{\n  ^bb0(%c: {chunk}, %old: !M, %count: !M):"
    text = UNKNOWN.replace("CHUNKTYPE", chunk).replace("CHUNK", head)
    before = parse_module(text)
    split = f"split{{dim=N parts={parts}}}"
    assert_same_meaning(before, run_passes(before, split), "main")
    shared = f"{split},distribute{{dim=N_part axes=rank}},insert-collectives"
    assert_same_meaning(before, run_passes(before, shared), "main")


def decode(keys: int, ranks: int) -> str:
    """Return flash_decode with the keys shared by ranks, and their mesh."""
    types = ["tensor<2x1x3x5xf32>", *(f"tensor<2x1x{keys}x{d}xf32>" for d in (5, 4))]
    shard = '{collective.shard = {S = ["rank"]}}'
    result = "tensor<2x1x3x4xf32>"
    operands = f"({', '.join(types)}, tensor<2xi32>)"
    return f"""{mesh_text({"rank": ranks})}
func.func @main(%q: {types[0]}, %k: {types[1]} {shard}, %v: {types[2]} {shard},
    %lens: tensor<2xi32>) -> {result} {{
  %o = compound.flash_decode %q, %k, %v, %lens {shard} : {operands} -> {result}
  func.return %o : {result}
}}
"""


@one_of(2)
@pytest.mark.parametrize(
    ("ranks", "parts", "stream"),
    covering(product(RANKS, (1, 4, 6, 24), ("", "stream,")), 1),
)
def test_shares_of_ranks_in_parts(ranks: int, parts: int, stream: str):
    before = parse_module(decode(24, ranks))
    passes = f"decompose,{stream}split{{dim=S parts={parts}}},insert-collectives"
    shared = run_passes(before, passes)
    placed = run_passes(shared, "place-collectives,lower-reductions")
    for seed in range(3 if EVERY_CASE else 1):
        assert_same_meaning(before, shared, "main", seed=seed)
        assert_same_meaning(before, placed, "main", seed=seed)


def test_what_ranks_exchange():
    """Each rank merges the partials of its own parts before it gives them away."""
    passes = "decompose,stream,split{dim=S parts=8},insert-collectives"
    after = run_passes(parse_module(decode(24, 4)), passes)
    folds = [op.dim.data for op in after.walk() if isinstance(op, FoldOp)]
    assert folds == ["S_in", "S_parts", "rank_part"]
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert [type(op) for op in found] == [AllGatherOp] * 3
    assert all("S_parts" not in names_of(op.input) for op in found)
    merging = [op for op in after.walk() if isinstance(op, FoldOp)]
    assert not any(fold.element_by_element for fold in merging)


def test_shares_are_viewed_where_they_lie():
    """No rank moves keys or values if its shard is a number of whole parts."""
    passes = "decompose,stream,split{dim=S parts=4},insert-collectives"
    for ranks, moved in ((2, False), (4, False), (3, True)):
        after = run_passes(parse_module(decode(24, ranks)), passes)
        views = [op for op in after.walk() if isinstance(op, RenameOp) and op.cut]
        gathered = [isinstance(op.input.owner, AllGatherOp) for op in views]
        assert gathered[:2] == [moved, moved]


def test_kernels_with_more_programs_than_results(tmp_path: Path):
    """One kernel makes partials of every part, another merges them."""
    shard = '{collective.shard = {S = ["rank"]}}'
    text = decode(24, 1).replace(shard, "").replace("collective.mesh @mesh", "// ")
    pipeline = (
        f"{hardware('h200x1.yaml')},decompose,stream,split{{dim=S parts=4}},"
        "fuse{strategy=partial},tile,outline-kernels,lower-to-triton"
    )
    source = emitted(text, pipeline)
    assert source.count("@triton.jit") == 2
    (report,) = check_all({"decode": source}, tmp_path).values()
    assert report["ok"], report


def test_names_that_are_taken():
    text = """
    func.func @main(%x: tensor<4x6xf32, #compound.dims<N_part, N>>)
        -> tensor<4xf32, #compound.dims<N_part>> {
      %y = compound.reduce add %x : tensor<4x6xf32, #compound.dims<N_part, N>>
        -> tensor<4xf32, #compound.dims<N_part>>
      func.return %y : tensor<4xf32, #compound.dims<N_part>>
    }"""
    before = parse_module(text)
    after = run_passes(before, "split{dim=N parts=2}")
    assert_same_meaning(before, after, "main")
    assert "<N_part, N_part1, N_in>" in str(after)


def latent_attention() -> str:
    """Return attention whose keys are its values, C wide, and a product over C."""
    p = Program({"M": 3, "N": 5, "C": 4, "D": 2})
    low = p.argument("low", "NC")
    scores = p.contract("scores", p.argument("q", "MC"), low, "MN")
    mixed = p.contract("mixed", softmax(p, scores, "weights"), low, "MC")
    return p.returning(p.contract("y", mixed, p.argument("wo", "CD"), "MD"))


def test_a_fold_that_keeps_the_dimension_is_no_partial_one():
    """Maxima and sums of rows have no parts, although the values have."""
    before = run_passes(parse_module(latent_attention()), "stream")
    assert "compound.fold" in str(before)
    assert_same_meaning(before, run_passes(before, "split{dim=C parts=2}"), "main")


def test_a_fold_that_sums_another_dimension_is_not_split_along_it():
    text = (
        UNKNOWN.replace("<M, N>", "<M, N, C>")
        .replace("3x12x", "3x12x4x")
        .replace(
            "3x1xf32, #compound.dims<M, N, C>", "3x1x4xf32, #compound.dims<M, N, C>"
        )
    )
    head = "step {\n  ^bb0(%c: !X, %old: !M, %count: !M):"
    before = parse_module(text.replace("CHUNKTYPE", "!X").replace("CHUNK", head))
    with pytest.raises(PassFailedException, match=r"fold' of @main reads C as one dim"):
        run_passes(before, "split{dim=C parts=2}")


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("split{dim=Q parts=2}", "no value has the dimension Q; .* B, D, E, H, M, N"),
        (
            "split{dim=N parts=5}",
            r"N = 12 of @main has no 5 .* may be 1, 2, 3, 4, 6, 12",
        ),
        ("split{dim=N parts=0}", "has no 0 parts"),
        (
            "split{dim=M parts=5}",
            "@main returns a value with M; split a dimension that",
        ),
    ],
)
def test_rejects(passes: str, message: str):
    op = next(op for op in NAMED_OPS if op.title == "attention")
    module = parse_module(op.text({**op.odd, "N": 12}))
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, f"decompose,{passes}")


def test_rejects_the_graph_level():
    module = parse_module(NAMED_OPS[0].text(NAMED_OPS[0].odd))
    with pytest.raises(PassFailedException, match="run decompose first"):
        run_passes(module, "split{dim=K parts=1}")


PROJECTIONS = """
!X = tensor<5x12xf16, #compound.dims<M, D>>
!G = tensor<12xf16, #compound.dims<D>>
!W = tensor<12x7xf16, #compound.dims<D, N>>
!U = tensor<7x12xf16, #compound.dims<N, D>>
!Y = tensor<5x7xf32, #compound.dims<M, N>>
!F = tensor<5x12xf32, #compound.dims<M, D>>
!H = tensor<5x7xf16, #compound.dims<M, N>>
!Z = tensor<5x12xf16, #compound.dims<M, D>>
func.func @main(%x: !X, %g: !G, %w: !W, %v: !W, %u: !U) -> (!Z, !Y) {
  %h = compound.map mult %x, %g : !X, !G -> !X
  %q = compound.contract %h, %w : !X, !W -> !Y
  %k = compound.contract %h, %v : !X, !W -> !Y
  %a = compound.map mult %q, %k : !Y, !Y -> !Y
  %a_f16 = compound.cast %a : !Y -> !H
  %o = compound.contract %a_f16, %u : !H, !U -> !F
  %o_f16 = compound.cast %o : !F -> !Z
  %y = compound.map add %x, %o_f16 : !Z, !Z -> !Z
  %s = compound.contract %y, %w : !X, !W -> !Y
  func.return %y, %s : !Z, !Y
}
"""


@pytest.mark.parametrize("parts", [1, 2, 6])
@pytest.mark.parametrize("products", ["q", "k s", "q k s"])
def test_products_are_split_alone(products: str, parts: int):
    """D is returned, so the function as a whole cannot be split along it."""
    before = parse_module(PROJECTIONS)
    split = f'split{{dim=D parts={parts} products="{products}"}}'
    after = run_passes(before, split)
    assert_same_meaning(before, after, "main")
    reductions = [op for op in after.walk() if isinstance(op, ReduceOp)]
    assert len(reductions) == len(products.split())


def test_long_chains_before_a_product_are_split_with_it():
    """Each op of the chain reads the one before it twice, and is visited once."""
    chain = "\n".join(
        f"%h{n + 1} = compound.map max %h{n}, %h{n} : !X, !X -> !X" for n in range(64)
    )
    before = parse_module(f"""
      !X = tensor<2x12xf32, #compound.dims<M, D>>
      !W = tensor<12x3xf32, #compound.dims<D, N>>
      !Y = tensor<2x3xf32, #compound.dims<M, N>>
      func.func @main(%h0: !X, %w: !W) -> !Y {{
        {chain}
        %c = compound.contract %h64, %w : !X, !W -> !Y
        func.return %c : !Y
      }}""")
    after = run_passes(before, "split{dim=D parts=4 products=c}")
    assert_same_meaning(before, after, "main")
    maps = [op for op in after.walk() if isinstance(op, MapOp)]
    assert all("D_part" in names_of(op.result) for op in maps)


GRADIENT = """
!X = tensor<5x12xf16, #compound.dims<M, F>>
!W = tensor<12x7xf16, #compound.dims<F, D>>
!Y = tensor<5x7xf32, #compound.dims<M, D>>
func.func @main(%x: !X, %y: !X, %w: !W, %v: !W, %r: !Y) -> (!Y, !Y) {
  %a = compound.contract %x, %w : !X, !W -> !Y
  %b = compound.contract %y, %v : !X, !W -> !Y
  %c = compound.contract %x, %v : !X, !W -> !Y
  %s = compound.map add %a, %r : !Y, !Y -> !Y
  %t = compound.map add %s, %b : !Y, !Y -> !Y
  %u = compound.map add %c, %r : !Y, !Y -> !Y
  func.return %t, %u : !Y, !Y
}
"""


def test_products_of_one_sum_are_not_tried_alone():
    """They share an accumulator, in which the parts of one of them would be missing."""
    module = parse_module(GRADIENT)
    products = [op for op in module.walk() if isinstance(op, ContractOp)]
    assert list(map(shares_accumulator, products)) == [True, True, False]
    (group,) = products_by_operand(module)
    assert list(group.by_name) == ["c"]


def test_products_are_tried_with_what_follows_them():
    """Elementwise ops are in the kernels that store their results."""
    module = parse_module(PROJECTIONS)
    first, *_ = groups = list(products_by_operand(module))
    assert [list(group.by_name) for group in groups] == [["q", "k"], ["o"], ["s"]]
    (func,) = compute_functions(first.alone(module))
    assert [op.name.partition(".")[2] for op in func.body.block.ops] == [
        *("contract", "contract", "map", "cast", "return"),
    ]
    assert len(func.body.block.args) == 3


LAYERS = """
!X = tensor<16x512xf16, #compound.dims<M, K>>
!W = tensor<512x512xf16, #compound.dims<K, N>>
!Y = tensor<16x512xf32, #compound.dims<M, N>>
!Z = tensor<16x512xf32, #compound.dims<M, K>>

func.func @layers(%x: !X, %r: !Z, %w1: !W, %w2: !W, %w3: !W) -> (!Y, !Y, !Y) {
  %a = compound.contract %x, %w1 : !X, !W -> !Y
  %one = compound.fill 1.0 : !Y
  %a1 = compound.map add %a, %one : !Y, !Y -> !Y
  %b = compound.contract %x, %w2 : !X, !W -> !Y
  %b1 = compound.map add %b, %one : !Y, !Y -> !Y
  %y = compound.cast %r : !Z -> !X
  %c = compound.contract %y, %w3 : !X, !W -> !Y
  %s = compound.map add %a1, %c : !Y, !Y -> !Y
  func.return %a1, %b1, %s : !Y, !Y, !Y
}
"""


def test_products_are_tried_without_what_waits_for_later_ones():
    """The sum of a residual is an epilogue of the last product that it adds."""
    module = parse_module(LAYERS)
    groups = list(products_by_operand(module))
    assert [list(group.by_name) for group in groups] == [["a", "b"], ["c"]]
    tried = [
        [op.name.partition(".")[2] for op in func.body.block.ops]
        for group in groups
        for func in compute_functions(group.alone(module))
    ]
    assert tried == [
        ["fill", "contract", "map", "contract", "map", "return"],
        ["contract", "map", "return"],
    ]


def test_products_alone_have_the_names_of_the_long_function():
    """The IR keeps no number at the end of a hint: products of models have such."""
    text = LAYERS.replace("%a ", "%0 ").replace("%a,", "%0,")
    module = parse_module(text.replace("%b ", "%1 ").replace("%b,", "%1,"))
    first, second = products_by_operand(module)
    assert [list(each.by_name) for each in (first, second)] == [
        ["contract", "contract_1"],
        ["c"],
    ]
    late = Products({"contract_1": first.by_name["contract_1"]})
    alone = late.alone(module)
    split = Trials(alone, (), names=late.names_in(alone)).here(
        SplitPass("K", 2, "contract_1")
    )
    assert split == SplitPass("K", 2, "contract")
    split.apply(Context(), alone)  # Raises if it has no product of this name.


def test_functions_of_equal_products_are_described_alike():
    module = parse_module(LAYERS)
    products = products_of(next(iter(compute_functions(module))))
    a, b, c = (products_alone(module, {name: products[name]}) for name in "abc")
    assert described(a) == described(b) != described(c)


def test_products_of_layers_are_split_though_their_names_are_alike():
    """Names end in numbers, which the parts of an earlier product change."""
    p = Program({"M": 16, "D": 8192, "F": 1024}, "bf16", "f32")
    x = p.argument("x", "MD")
    for layer in range(3):
        up, down = p.argument(f"up_{layer}", "DF"), p.argument(f"down_{layer}", "FD")
        h = p.contract(f"h_{layer}", x, up, "MF")
        for step in range(4):
            h = p.map(f"t{step}_{layer}", "tanh", h)
        x = p.contract(f"y_{layer}", h, down, "MD")
        for step in range(4):
            x = p.map(f"u{step}_{layer}", "tanh", x)
    passes = f"{hardware('h200x1.yaml')},triton-distributed{{to=dataflow}}"
    module = run_passes(parse_module(p.returning(x)), passes)
    products = [op for op in module.walk() if isinstance(op, ContractOp)]
    split = [op for op in products if any("_part" in d for d in names_of(op.result))]
    assert len(split) == 3


def test_the_option_of_the_pipeline_gives_each_split():
    found = parse_splits("S=64;D=4: q %k; F = 2 : down")
    assert found == (
        SplitPass("S", 64),
        SplitPass("D", 4, "q k"),
        SplitPass("F", 2, "down"),
    )
    assert parse_splits(";".join(each.label for each in found)) == found
    with pytest.raises(PassFailedException, match=r"DIM=PARTS.* not 'D=q'"):
        parse_splits("D=q")
