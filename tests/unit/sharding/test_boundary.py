"""Shardings of arguments, results and named ops: meaning, collectives, and errors."""

from itertools import product

import pytest
from covering import covering
from programs import mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from sharded_programs import collectives
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.spmd import SpmdOp, sharding_of
from comet.dialects.reference import is_reference
from comet.passes.sharding.boundary import boundary_of, says_sharding
from comet.passes.sharding.shardings import sharding_of_op

RANKS = (1, 2, 3, 4, 8)
SIZES = ((7, 5, 13), (1, 3, 17), (8, 16, 32))


def shard(sharding: str) -> str:
    """Return an attribute dictionary, or nothing if no sharding is given."""
    return f"{{collective.shard = {sharding}}}" if sharding else ""


def silu(
    sizes: tuple[int, int, int],
    ranks: int,
    a: str = "",
    b: str = "",
    op: str = "",
    result: str = "",
) -> ModuleOp:
    """Return gemm_silu with the given shardings of its values and of itself."""
    m, k, n = sizes
    types = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>", f"tensor<{m}x{n}xf16>"
    return parse_module(
        f"""{mesh_text({"rank": ranks})}
func.func @main(%a: {types[0]} {shard(a)}, %b: {types[1]} {shard(b)})
    -> ({types[2]} {shard(result)}) {{
  %c = compound.gemm_silu %a, %b {shard(op)}
    : ({types[0]}, {types[1]}) -> {types[2]}
  func.return %c : {types[2]}
}}"""
    )


K, M, N = '{K = ["rank"]}', '{M = ["rank"]}', '{N = ["rank"]}'
CASES: dict[str, tuple[dict[str, str], list[str]]] = {
    "a sharded in K": ({"a": K}, ["all_gather"]),
    "a sharded in M": ({"a": M}, ["all_gather"]),
    "a and b": ({"a": M, "b": N}, ["all_gather", "all_gather"]),
    "held as wanted": ({"a": K, "b": K, "op": K}, ["all_reduce"]),
    "only the op": ({"op": K}, ["all_reduce"]),
    "a swapped": ({"a": M, "op": K}, ["all_to_all", "all_reduce"]),
    "result left in shards": ({"op": N}, []),
    "result made whole": ({"op": N, "result": "{}"}, ["all_gather"]),
    "result swapped": ({"op": M, "result": N}, ["all_to_all"]),
    "only the result": ({"result": M}, ["scatter"]),
    "a product in shards": ({"op": K, "result": M}, ["reduce_scatter"]),
    "result kept": ({"a": M, "op": M, "result": M}, []),
}


@pytest.mark.parametrize(
    ("case", "ranks", "sizes"), covering(product(CASES, RANKS, SIZES), 1)
)
def test_meaning_and_collectives(case: str, ranks: int, sizes: tuple[int, int, int]):
    shardings, expected = CASES[case]
    before = silu(sizes, ranks, **shardings)
    after = run_passes(before, "decompose,insert-collectives")
    assert_same_meaning(before, after, "main")
    assert collectives(after) == expected


def test_a_product_over_shards_is_scattered_into_a_result_in_shards():
    text = """
    collective.mesh @gpus {rank = 3}
    func.func @main(%a: tensor<7x5xf32, #compound.dims<M, K>>,
        %b: tensor<5x4xf32, #compound.dims<K, N>>)
        -> (tensor<7x4xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}}) {
      %c = compound.contract %a, %b {collective.shard = {K = ["rank"]}}
        : tensor<7x5xf32, #compound.dims<M, K>>, tensor<5x4xf32, #compound.dims<K, N>>
        -> tensor<7x4xf32, #compound.dims<M, N>>
      func.return %c : tensor<7x4xf32, #compound.dims<M, N>>
    }"""
    before = parse_module(text)
    after = run_passes(before, "insert-collectives")
    assert_same_meaning(before, after, "main")
    assert collectives(after) == ["reduce_scatter"]


def test_one_value_is_returned_in_several_shardings():
    text = """
    collective.mesh @gpus {rank = 2}
    func.func @main(%x: tensor<5x4xf32, #compound.dims<M, N>>
        {collective.shard = {M = ["rank"]}})
        -> (tensor<5x4xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}},
            tensor<5x4xf32, #compound.dims<M, N>>,
            tensor<5x4xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}},
            tensor<5x4xf32, #compound.dims<M, N>>) {
      %y = compound.map exp %x {collective.shard = {M = ["rank"]}}
        : tensor<5x4xf32, #compound.dims<M, N>> -> tensor<5x4xf32, #compound.dims<M, N>>
      func.return %y, %x, %y, %y : tensor<5x4xf32, #compound.dims<M, N>>,
        tensor<5x4xf32, #compound.dims<M, N>>, tensor<5x4xf32, #compound.dims<M, N>>,
        tensor<5x4xf32, #compound.dims<M, N>>
    }"""
    before = parse_module(text)
    after = run_passes(before, "insert-collectives")
    assert_same_meaning(before, after, "main")
    (region,) = (op for op in after.walk() if isinstance(op, SpmdOp))
    shares = {"M": ("rank",)}
    assert list(map(sharding_of, region.out_shardings)) == [shares, shares]


def test_the_signature_says_nothing_twice():
    """The region says the shardings; other attributes of arguments stay."""
    before = silu((7, 5, 13), 2, a=K, result=N)
    (main,) = (op for op in before.ops if isinstance(op, FuncOp))
    assert says_sharding(main)
    text = str(before).replace(
        '{collective.shard = {K = ["rank"]}}',
        '{collective.shard = {K = ["rank"]}, test.kept}',
    )
    after = run_passes(parse_module(text), "decompose,insert-collectives")
    assert "collective.shard" not in str(after)
    assert "test.kept" in str(after)


def test_references_have_no_shardings():
    after = run_passes(silu((7, 5, 13), 2, a=K, op=K, result=N), "decompose")
    (reference,) = (f for f in after.ops if isinstance(f, FuncOp) and is_reference(f))
    assert not says_sharding(reference)
    assert not any("collective.shard" in op.attributes for op in reference.walk())


def test_a_named_op_gives_its_sharding_to_the_ops_that_have_the_dimension():
    text = """
    func.func @main(%q: tensor<1x2x5x4xf16>, %k: tensor<1x2x7x4xf16>,
        %v: tensor<1x2x7x3xf16>) -> tensor<1x2x5x3xf16> {
      %o = compound.attention %q, %k, %v {collective.shard = {M = ["rank"]}}
        : (tensor<1x2x5x4xf16>, tensor<1x2x7x4xf16>, tensor<1x2x7x3xf16>)
        -> tensor<1x2x5x3xf16>
      func.return %o : tensor<1x2x5x3xf16>
    }"""
    for passes in ("decompose", "decompose,stream"):
        after = run_passes(parse_module(text), passes)
        (main,) = (f for f in after.ops if isinstance(f, FuncOp) and says_sharding(f))
        fills = [op for op in main.body.block.ops if op.name == "compound.fill"]
        others = [op for op in main.body.block.ops if op not in fills][:-1]
        assert all(not sharding_of_op(op) for op in fills)
        assert all(sharding_of_op(op) == {"M": ("rank",)} for op in others)


def test_the_dimension_of_a_named_op_is_called_as_the_op_calls_it():
    """The second product's N is called N1 in the function."""
    text = """
    func.func @main(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %v: tensor<5x6xf32>)
        -> tensor<3x6xf32> {
      %p = compound.gemm_silu %a, %b
          : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
      %q = compound.gemm_silu %p, %v {collective.shard = {N = ["rank"]}}
          : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
      func.return %q : tensor<3x6xf32>
    }
    """
    after = run_passes(parse_module(text), "decompose")
    shardings = {str(sharding_of_op(op)) for op in after.walk()}
    assert shardings == {"{}", str({"N1": ("rank",)})}


def test_the_boundary_is_read():
    (main,) = (
        op for op in silu((7, 5, 13), 2, a=K, result="{}").ops if isinstance(op, FuncOp)
    )
    boundary = boundary_of(main)
    assert boundary.arguments == ({"K": ("rank",)}, None)
    assert boundary.results == ({},)


@pytest.mark.parametrize(
    ("shardings", "message"),
    [
        ({"a": N}, "argument 0 of @main is sharded in N, .* dimensions are M, K"),
        ({"b": '{K = ["cx"]}'}, "argument 1 of @main has a wrong sharding: mesh"),
        ({"result": K}, "result 0 of @main is sharded in K, .* dimensions are M, N"),
        (
            {"result": '{M = ["rank"], N = ["rank"]}'},
            "result 0 of @main has a wrong sharding: axis 'rank' is named twice",
        ),
        ({"a": '"K"'}, "@main argument 0 collective.shard: expected a sharding"),
        ({"result": "{M = []}"}, "@main result 0 .* list of mesh axis names"),
    ],
)
def test_rejects_a_sharding_of_the_signature(shardings: dict[str, str], message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(silu((7, 5, 13), 2, **shardings), "decompose,insert-collectives")


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ('{S = ["rank"]}', "'compound.gemm_silu' is sharded in S, which it does not"),
        ('"N"', "'compound.gemm_silu' op collective.shard: expected a sharding"),
    ],
)
def test_rejects_a_sharding_of_a_named_op(sharding: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(silu((7, 5, 13), 2, op=sharding), "decompose")


def test_the_ops_at_the_end_run_as_the_result_is_wanted():
    """The cast after the product runs on a shard; used elsewhere, it does not."""
    text = """
    collective.mesh @gpus {rank = 2}
    func.func @main(%a: tensor<7x5xf16>, %b: tensor<5x4xf16>)
        -> (tensor<7x4xf16> {collective.shard = {M = ["rank"]}} MORE) {
      %c = compound.gemm %a, %b {collective.shard = {K = ["rank"]}}
        : (tensor<7x5xf16>, tensor<5x4xf16>) -> tensor<7x4xf16>
      func.return %c ANOTHER : tensor<7x4xf16> MORE
    }"""
    cases = {"": ["reduce_scatter"], ", tensor<7x4xf16>": ["all_reduce", "scatter"]}
    for more, expected in cases.items():
        again = ", %c" if more else ""
        before = parse_module(text.replace("MORE", more).replace("ANOTHER", again))
        after = run_passes(before, "decompose,insert-collectives")
        assert_same_meaning(before, after, "main")
        assert collectives(after) == expected
