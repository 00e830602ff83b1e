"""`insert-collectives`: meaning on every mesh, the collectives chosen, and errors."""

from functools import partial
from itertools import product

import pytest
from covering import covering, one_of
from programs import MESHES, ODD_SIZES, graph_text, mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from sharded_programs import collectives
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import FoldOp
from comet.dialects.compound.dims import names_of
from comet.interpreter import Steps

OPS = ("gemm_softmax", "gemm_layernorm")
GRID = MESHES[4]


def program(op: str, sizes: tuple[int, ...], axes: dict[str, int]) -> ModuleOp:
    return parse_module(mesh_text(axes) + graph_text(op, sizes))


def check_meaning(before: ModuleOp, pipeline: str) -> ModuleOp:
    """Return the module after `pipeline`, having checked that it means the same."""
    after = run_passes(before, pipeline)
    halves = partial(assert_same_meaning, chunks=lambda n: Steps((n // 2, n - n // 2)))
    for check in (assert_same_meaning, halves):
        check(before, after, "main", seed=5)
    return after


@one_of(2)
@pytest.mark.parametrize(
    ("op", "sizes", "axes", "dim", "stream"),
    covering(product(OPS, ODD_SIZES, MESHES, "MKN", ("", "stream,"))),
    ids=str,
)
def test_one_dimension_over_all_axes(
    op: str, sizes: tuple[int, int, int], axes: dict[str, int], dim: str, stream: str
):
    distribute = f"distribute{{dim={dim} axes={','.join(axes)}}}"
    pipeline = f"decompose,{stream}{distribute},insert-collectives"
    check_meaning(program(op, sizes, axes), pipeline)


@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize("op", OPS)
def test_two_dimensions_over_different_axes(op: str, sizes: tuple[int, int, int]):
    pipeline = (
        "decompose,distribute{dim=N axes=ky,cx},distribute{dim=M axes=kx},"
        "insert-collectives"
    )
    check_meaning(program(op, sizes, dict(GRID)), pipeline)


@one_of(2)
@pytest.mark.parametrize("stream", ["", "stream,"])
@pytest.mark.parametrize(
    ("contract", "maps"), list(product(["M", "N", "K"], ["M", "N"]))
)
def test_neighbours_that_differ(contract: str, maps: str, stream: str):
    """The contraction and the maps are sharded differently, the reductions not."""
    pipeline = (
        f"decompose,{stream}distribute{{dim={contract} axes=cx,ky op=contract}},"
        f"distribute{{dim={maps} axes=cx,ky op=map}},insert-collectives"
    )
    check_meaning(program("gemm_layernorm", (7, 5, 13), dict(GRID)), pipeline)


def test_the_order_of_axes_matters():
    pipeline = (
        "decompose,distribute{dim=N axes=cx,cy op=contract},"
        "distribute{dim=N axes=cy,cx op=map},insert-collectives"
    )
    after = check_meaning(program("gemm_softmax", (7, 5, 13), dict(GRID)), pipeline)
    assert collectives(after)[:2] == ["all_gather", "scatter"]


def test_statistics_are_reduced_and_nothing_else():
    pipeline = "decompose,distribute{dim=N axes=cx,cy,kx,ky},insert-collectives"
    after = run_passes(program("gemm_softmax", (7, 5, 32), dict(GRID)), pipeline)
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert collectives(after) == ["all_reduce", "all_reduce"]
    assert [names_of(op.input) for op in found] == [("M",), ("M",)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("dim=K axes=cx op=contract", "dim=N axes=cx op=reduce", "reduce_scatter"),
        ("dim=K axes=cx op=contract", "dim=N axes=cy op=map", "all_reduce"),
        ("dim=M axes=cx op=contract", "dim=N axes=cx op=reduce", "all_to_all"),
        ("dim=N axes=cx op=contract", "dim=K axes=cy op=contract", "all_reduce"),
        ("dim=N axes=cx op=contract", "dim=N axes=cy op=reduce", "all_gather"),
    ],
)
def test_the_collective_after_the_contraction(first: str, second: str, expected: str):
    pipeline = (
        f"decompose,distribute{{{first}}},distribute{{{second}}},insert-collectives"
    )
    before = program("gemm_softmax", (7, 6, 13), dict(GRID))
    assert collectives(check_meaning(before, pipeline))[0] == expected


def test_a_sharded_fold_gathers_its_partials():
    pipeline = "decompose,stream,distribute{dim=N axes=rank},insert-collectives"
    after = run_passes(program("gemm_layernorm", (3, 4, 9), {"rank": 4}), pipeline)
    assert collectives(after) == ["all_gather"] * 3
    folds = [op for op in after.walk() if isinstance(op, FoldOp)]
    assert [fold.dim.data for fold in folds] == ["N", "rank_part"]
    assert not any(fold.element_by_element for fold in folds)


def test_an_operand_used_in_two_shardings_comes_in_twice():
    text = (
        mesh_text(GRID)
        + """
    func.func @main(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
      %p = compound.gemm_softmax %x, %x
          : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
      func.return %p : tensor<5x5xf32>
    }
    """
    )
    pipeline = "decompose,distribute{dim=N axes=cx,cy},insert-collectives"
    after = check_meaning(parse_module(text), pipeline)
    spmd = next(op for op in after.walk() if op.name == "collective.spmd")
    assert len(spmd.operands) == 2


def test_a_fold_that_uses_a_value_from_outside():
    text = (
        mesh_text({"rank": 3})
        + """
    func.func @main(%x: tensor<4x7xf32, #compound.dims<M, N>>,
                    %w: tensor<4xf32, #compound.dims<M>>)
        -> tensor<4xf32, #compound.dims<M>> {
      %zero = compound.fill 0.0 : tensor<4xf32, #compound.dims<M>>
      %sum = compound.fold over "N" ins(%x : tensor<4x7xf32, #compound.dims<M, N>>)
          init(%zero : tensor<4xf32, #compound.dims<M>>) step {
      ^bb0(%c: tensor<4x7xf32, #compound.dims<M, N>>,
           %old: tensor<4xf32, #compound.dims<M>>):
        %s = compound.map mult %c, %w : tensor<4x7xf32, #compound.dims<M, N>>,
            tensor<4xf32, #compound.dims<M>> -> tensor<4x7xf32, #compound.dims<M, N>>
        %r = compound.reduce add %s : tensor<4x7xf32, #compound.dims<M, N>>
            -> tensor<4xf32, #compound.dims<M>>
        %n = compound.map add %old, %r : tensor<4xf32, #compound.dims<M>>,
            tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
        compound.yield %n : tensor<4xf32, #compound.dims<M>>
      } merge {
      ^bb0(%a: tensor<4xf32, #compound.dims<M>>, %b: tensor<4xf32, #compound.dims<M>>):
        %n = compound.map add %a, %b : tensor<4xf32, #compound.dims<M>>,
            tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
        compound.yield %n : tensor<4xf32, #compound.dims<M>>
      } -> tensor<4xf32, #compound.dims<M>>
      func.return %sum : tensor<4xf32, #compound.dims<M>>
    }
    """
    )
    for dim in ("M", "N"):
        pipeline = f"distribute{{dim={dim} axes=rank}},insert-collectives"
        after = check_meaning(parse_module(text), pipeline)
        folds = [op for op in after.walk() if isinstance(op, FoldOp)]
        assert len(folds) == (2 if dim == "N" else 1)
        assert not any(fold.element_by_element for fold in folds)


TWO_ITER_ARGS = """
    func.func @main(%x: tensor<7xf32, #compound.dims<N>>)
        -> (tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>>) {{
      %one = compound.fill 1.0 : tensor<f32, #compound.dims<>>
      %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
      %s, %p = compound.fold over "N" ins(%x : tensor<7xf32, #compound.dims<N>>)
          init(%zero, %zero : tensor<f32, #compound.dims<>>,
               tensor<f32, #compound.dims<>>) step {{
      ^bb0(%c: tensor<7xf32, #compound.dims<N>>, %s: tensor<f32, #compound.dims<>>,
           %p: tensor<f32, #compound.dims<>>):
        %r = compound.reduce add %c : tensor<7xf32, #compound.dims<N>>
            -> tensor<f32, #compound.dims<>>
        %t = compound.map add %s, %r : tensor<f32, #compound.dims<>>,
            tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
        compound.yield %t, %t : tensor<f32, #compound.dims<>>,
            tensor<f32, #compound.dims<>>
      }} merge {{
      ^bb0(%a: tensor<f32, #compound.dims<>>, %b: tensor<f32, #compound.dims<>>,
           %c: tensor<f32, #compound.dims<>>, %d: tensor<f32, #compound.dims<>>):
        %t = compound.map add %a, %c : tensor<f32, #compound.dims<>>,
            tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
        %u = compound.map {kind} {operands} : tensor<f32, #compound.dims<>>,
            tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
        compound.yield %t, %u : tensor<f32, #compound.dims<>>,
            tensor<f32, #compound.dims<>>
      }} -> tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>>
      func.return %s, %p : tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>>
    }}
"""


@pytest.mark.parametrize(
    ("kind", "operands", "one_by_one"),
    [("add", "%b, %d", False), ("add", "%a, %c", True), ("add", "%a, %d", True)],
)
def test_partials_are_merged_together_where_each_iter_arg_has_a_reduction(
    kind: str, operands: str, one_by_one: bool
):
    text = mesh_text({"rank": 2}) + TWO_ITER_ARGS.format(kind=kind, operands=operands)
    pipeline = "distribute{dim=N axes=rank},insert-collectives"
    after = check_meaning(parse_module(text), pipeline)
    folds = [op for op in after.walk() if isinstance(op, FoldOp)]
    assert any(fold.element_by_element for fold in folds) == one_by_one


def test_shares_of_one_element_are_merged_as_others():
    text = (
        mesh_text({"rank": 2})
        + """
    func.func @main(%x: tensor<2xf32, #compound.dims<N>>)
        -> tensor<f32, #compound.dims<>> {
      %m = compound.reduce max %x : tensor<2xf32, #compound.dims<N>>
          -> tensor<f32, #compound.dims<>>
      %s = compound.map sub %x, %m : tensor<2xf32, #compound.dims<N>>,
          tensor<f32, #compound.dims<>> -> tensor<2xf32, #compound.dims<N>>
      %e = compound.map exp %s : tensor<2xf32, #compound.dims<N>>
          -> tensor<2xf32, #compound.dims<N>>
      %l = compound.reduce add %e : tensor<2xf32, #compound.dims<N>>
          -> tensor<f32, #compound.dims<>>
      func.return %l : tensor<f32, #compound.dims<>>
    }
    """
    )
    pipeline = "stream,distribute{dim=N axes=rank},insert-collectives"
    after = check_meaning(parse_module(text), pipeline)
    merging = [op for op in after.walk() if isinstance(op, FoldOp)][1]
    assert not merging.element_by_element


@pytest.mark.parametrize("dim", ["M", "K", "N"])
def test_all_kinds_of_returned_values(dim: str):
    """A product, a renamed one, a constant, an argument, and one value twice."""
    text = (
        mesh_text({"rank": 4})
        + """
    func.func @main(%a: tensor<3x5xf32, #compound.dims<M, K>>,
                    %b: tensor<5x7xf32, #compound.dims<K, N>>)
        -> (tensor<3x7xf32, #compound.dims<M, N>>,
            tensor<3x7xf32, #compound.dims<P, Q>>, tensor<3xf32, #compound.dims<M>>,
            tensor<3x5xf32, #compound.dims<M, K>>,
            tensor<3x7xf32, #compound.dims<M, N>>) {
      %c = compound.contract %a, %b : tensor<3x5xf32, #compound.dims<M, K>>,
          tensor<5x7xf32, #compound.dims<K, N>> -> tensor<3x7xf32, #compound.dims<M, N>>
      %r = compound.rename %c : tensor<3x7xf32, #compound.dims<M, N>>
          -> tensor<3x7xf32, #compound.dims<P, Q>>
      %f = compound.fill 2.0 : tensor<3xf32, #compound.dims<M>>
      func.return %c, %r, %f, %a, %c : tensor<3x7xf32, #compound.dims<M, N>>,
          tensor<3x7xf32, #compound.dims<P, Q>>, tensor<3xf32, #compound.dims<M>>,
          tensor<3x5xf32, #compound.dims<M, K>>, tensor<3x7xf32, #compound.dims<M, N>>
    }
    """
    )
    pipeline = f"distribute{{dim={dim} axes=rank}},insert-collectives"
    after = check_meaning(parse_module(text), pipeline)
    assert collectives(after) == (["all_reduce"] if dim == "K" else [])


@pytest.mark.parametrize("stream", ["", "stream,"])
def test_constants_are_not_sharded(stream: str):
    """A softmax of a constant, kept by a number that needs all of it."""
    text = (
        mesh_text({"rank": 3})
        + """
    !v = tensor<5xf32, #compound.dims<N>>
    !s = tensor<f32, #compound.dims<>>
    func.func @main() -> !s {
      %x = compound.fill 2.0 : !v
      %m = compound.reduce max %x : !v -> !s
      %d = compound.map sub %x, %m : !v, !s -> !v
      %e = compound.map exp %d : !v -> !v
      %l = compound.reduce add %e : !v -> !s
      %p = compound.map div %e, %l : !v, !s -> !v
      %y = compound.reduce add %p : !v -> !s
      func.return %y : !s
    }
    """
    )
    pipeline = stream + "distribute{dim=N axes=rank},insert-collectives"
    after = check_meaning(parse_module(text), pipeline)
    assert not collectives(after)


def test_without_shardings_nothing_changes():
    before = run_passes(program("gemm_softmax", (3, 4, 5), {"rank": 2}), "decompose")
    assert str(run_passes(before, "insert-collectives")) == str(before)


ANNOTATED = """
collective.mesh @mesh {rank = 2}
func.func @main(%x: tensor<4x6xf32, #compound.dims<M, N>>)
    -> tensor<4x6xf32, #compound.dims<M, N>> {
  %y = compound.map exp %x {collective.shard = SHARDING}
      : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x6xf32, #compound.dims<M, N>>
  func.return %y : tensor<4x6xf32, #compound.dims<M, N>>
}
"""


def test_rejects_a_sharding_over_no_axis():
    module = parse_module(ANNOTATED.replace("SHARDING", "{N = []}"))
    with pytest.raises(PassFailedException, match="list of mesh axis names"):
        run_passes(module, "insert-collectives")


SPMD = "decompose,distribute{dim=N axes=cx,cy,kx,ky},insert-collectives"
ALL_REDUCE = 'collective.all_reduce add %l on @mesh ["cx", "cy", "kx", "ky"]'


def mutated(change: str) -> tuple[ModuleOp, str]:
    """Return gemm_softmax at the SPMD level, and its text with one collective wrong."""
    module = run_passes(program("gemm_softmax", (7, 5, 32), dict(GRID)), SPMD)
    text = str(module)
    assert ALL_REDUCE in text
    if change == "removed":
        line = next(line for line in text.splitlines() if ALL_REDUCE in line)
        return module, text.replace(line, "").replace("%l_1", "%l")
    return module, text.replace(ALL_REDUCE, change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("removed", "a collective.all_reduce add is missing"),
        (ALL_REDUCE.replace("add", "max"), r"partial\(add\)"),
        (ALL_REDUCE.replace('"cx", ', ""), "over axis 'cx'"),
    ],
)
def test_a_wrong_collective_is_caught(change: str, message: str):
    right, text = mutated(change)
    with pytest.raises(VerifyException, match=message):
        parse_module(text)
    wrong = parse_module(text, verify=False)
    with pytest.raises(AssertionError):
        assert_same_meaning(right, wrong, "main")


OF_CONSTANTS = {
    "elements": "%v = compound.map add %a, %d : !m, !m -> !m",
    "a sum": "%r = compound.reduce add %d : !m -> !s\n"
    "%v = compound.map add %a, %r : !m, !s -> !m",
    "a product": "%r = compound.contract %c, %d : !m, !m -> !s\n"
    "%v = compound.map add %a, %r : !m, !s -> !m",
    "an extent": '%r = compound.extent "M" of %d : !m -> !s\n'
    "%v = compound.map add %a, %r : !m, !s -> !m",
    "a fold": """%r = compound.fold over "M" ins(%d : !m) init(%zero : !s) step {
      ^bb0(%x: !m, %old: !s):
        %t = compound.reduce add %x : !m -> !s
        %new = compound.map add %old, %t : !s, !s -> !s
        compound.yield %new : !s
      } merge {
      ^bb0(%x: !s, %y: !s):
        %new = compound.map add %x, %y : !s, !s -> !s
        compound.yield %new : !s
      } -> !s
      %v = compound.map add %a, %r : !m, !s -> !m""",
}


@pytest.mark.parametrize("what", OF_CONSTANTS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_made_of_constants_is_there_in_any_shards(what: str, ranks: int):
    text = f"""
    !m = tensor<7xf32, #compound.dims<M>>
    !s = tensor<f32, #compound.dims<>>
    {mesh_text({"rank": ranks})}
    func.func @main(%a: !m) -> !m {{
      %zero = compound.fill 0.0 : !s
      %c = compound.fill 1.5 : !m
      %d = compound.map mult %c, %c : !m, !m -> !m
      {OF_CONSTANTS[what]}
      func.return %v : !m
    }}
    """
    pipeline = "distribute{dim=M axes=rank},insert-collectives"
    assert collectives(check_meaning(parse_module(text), pipeline)) == []


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ('compound.extent "N" of %x : !x -> !s', ["all_gather", "scatter"]),
        ('compound.extent "M" of %x : !x -> !s', ["all_gather", "scatter"]),
        ('compound.extent "M" of %one : !m -> !s', []),
        ("compound.reduce add %x : !x -> !n", ["all_gather", "scatter"]),
    ],
)
def test_a_sharded_result_with_a_dimension_of_constants(
    numbers: str, expected: list[str]
):
    """Ranks compute it whole and keep a shard, unless all of it is constant."""
    kept = numbers.rpartition(" ")[2]
    result = "!nm" if kept == "!n" else "!m"
    text = f"""
    !x = tensor<5x7xf32, #compound.dims<N, M>>
    !nm = tensor<5x7xf32, #compound.dims<N, M>>
    !n = tensor<5xf32, #compound.dims<N>>
    !m = tensor<7xf32, #compound.dims<M>>
    !s = tensor<f32, #compound.dims<>>
    {mesh_text({"rank": 2})}
    func.func @main(%x: !x {{collective.shard = {{M = ["rank"]}}}})
        -> ({result} {{collective.shard = {{M = ["rank"]}}}}) {{
      %one = compound.fill 1.5 : !m
      %n = {numbers}
      %y = compound.map div %one, %n : !m, {kept} -> {result}
      func.return %y : {result}
    }}
    """
    after = check_meaning(parse_module(text), "insert-collectives")
    assert collectives(after) == expected
