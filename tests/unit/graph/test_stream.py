"""`stream`: meaning under any chunking and merge tree, recognition, and errors."""

import random

import numpy as np
import pytest
from covering import EVERY_CASE, one_of
from programs import ODD_SIZES, graph_text
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from trees import random_tree
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import FoldOp, MapOp, ReduceOp, YieldOp
from comet.interpreter import Steps, run
from comet.passes.graph.stream.attention import DropoutForm
from comet.passes.graph.stream.forms import form_of

OPS = ("gemm_softmax", "gemm_layernorm")


def elementary(text: str) -> ModuleOp:
    return run_passes(parse_module(text), "decompose")


@one_of(2)
@pytest.mark.parametrize("seed", range(8 if EVERY_CASE else 2))
@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize("op", OPS)
def test_meaning_under_any_tree(op: str, sizes: tuple[int, int, int], seed: int):
    before = elementary(graph_text(op, sizes))
    after = run_passes(before, "stream{dim=N}")
    generator = random.Random(seed)
    assert_same_meaning(
        before, after, "main", seed=seed, chunks=lambda n: random_tree(n, generator)
    )


@pytest.mark.parametrize("op", OPS)
def test_large_values_do_not_overflow(op: str):
    before = elementary(graph_text(op, (4, 3, 10)))
    after = run_passes(before, "stream")
    inputs = [1e3 * value for value in random_inputs(before, "main")]
    expected = run(before, "main", inputs)
    assert np.all(np.isfinite(expected[0]))
    assert_close(run(after, "main", inputs, lambda n: Steps((1,) * n)), expected)


@pytest.mark.parametrize("op", OPS)
def test_one_fold_reads_the_dimension(op: str):
    after = run_passes(elementary(graph_text(op, (4, 3, 10))), "stream")
    main = next(iter(after.ops))
    names = [inner.name for inner in main.regions[0].block.ops]
    assert names.count("compound.fold") == 1
    assert "compound.reduce" not in names


@pytest.mark.parametrize("op", OPS)
def test_a_fold_of_one_chunk_is_plain_again(op: str):
    """Canonicalization removes all that rescales the neutral iter_args."""
    before = elementary(graph_text(op, (4, 3, 10)))
    streamed = run_passes(before, "stream")
    after = inline_single_step(streamed)
    after.verify()
    assert_same_meaning(before, after, "main")
    plain = run_passes(after, "canonicalize,cse")
    assert_same_meaning(before, plain, "main")
    kinds = map_kinds(plain)
    if op == "gemm_softmax":
        assert kinds == map_kinds(run_passes(before, "canonicalize,cse"))
    else:
        assert len(kinds) < len(map_kinds(after)) - 8


def map_kinds(module: ModuleOp) -> list[str]:
    """Return the kinds of the maps in @main, in order."""
    main = next(iter(module.ops))
    return [str(op.kind.data) for op in main.walk() if isinstance(op, MapOp)]


def inline_single_step(module: ModuleOp) -> ModuleOp:
    """Return the module with its folds replaced by one step over everything."""
    module = module.clone()
    main = next(iter(module.ops))
    for fold in [op for op in main.walk() if isinstance(op, FoldOp)]:
        block = fold.step.block
        terminator = block.last_op
        assert isinstance(terminator, YieldOp)
        results = terminator.values
        terminator.detach()
        Rewriter.inline_block(block, InsertPoint.before(fold), fold.operands)
        for old, new in zip(fold.outs, results, strict=True):
            old.replace_all_uses_with(new)
        terminator.erase()
        fold.detach()
        fold.erase(safe_erase=False)
    return module


def row_program(body: str, result: str = "%r") -> str:
    """Return @main on x<M, N>, with the types of `body` left to short names."""
    text = f"""
    func.func @main(%x: XN) -> XM {{
      {body}
      func.return {result} : XM
    }}
    """
    return text.replace("XN", "tensor<3x7xf64, #compound.dims<M, N>>").replace(
        "XM", "tensor<3xf64, #compound.dims<M>>"
    )


def folds_in(text: str, dim: str = "N") -> int:
    """Return the number of folds, having checked that the meaning is the same."""
    before = parse_module(text)
    after = run_passes(before, f"stream{{dim={dim}}}")
    assert_same_meaning(before, after, "main", chunks=lambda n: Steps((n - 2, 2)))
    return sum(isinstance(op, FoldOp) for op in after.walk())


def test_a_lone_reduction_stays():
    assert folds_in(row_program("%r = compound.reduce add %x : XN -> XM")) == 0


def test_independent_reductions_stay():
    body = """
    %q = compound.map mult %x, %x : XN, XN -> XN
    %s = compound.reduce add %x : XN -> XM
    %t = compound.reduce add %q : XN -> XM
    %r = compound.map add %s, %t : XM, XM -> XM
    """
    assert folds_in(row_program(body)) == 0


SOFTMAX_STATISTICS = """
    %m = compound.reduce max %x : XN -> XM
    %s = compound.map sub %x, %m : XN, XM -> XN
    %e = compound.map exp %s : XN -> XN
    %l = compound.reduce add %e : XN -> XM
"""


def test_softmax_then_layernorm_of_its_result():
    body = (
        SOFTMAX_STATISTICS
        + """
    %p = compound.map div %e, %l : XN, XM -> XN
    %w = compound.fill 0.14285714285714285 : tensor<f64, #compound.dims<>>
    %sum = compound.reduce add %p : XN -> XM
    %mean = compound.map mult %w, %sum : tensor<f64, #compound.dims<>>, XM -> XM
    %d = compound.map sub %p, %mean : XN, XM -> XN
    %q = compound.map mult %d, %d : XN, XN -> XN
    %v = compound.reduce add %q : XN -> XM
    %r = compound.map add %v, %mean : XM, XM -> XM
    """
    )
    assert folds_in(row_program(body)) == 2


def test_statistics_that_are_used_elsewhere_too():
    body = (
        SOFTMAX_STATISTICS
        + """
    %r = compound.map mult %l, %m : XM, XM -> XM
    """
    )
    assert folds_in(row_program(body)) == 1


def test_another_dimension_leaves_the_reductions_over_n():
    body = SOFTMAX_STATISTICS + "%r = compound.map log %l : XM -> XM"
    assert folds_in(row_program(body), dim="M") == 0


@pytest.mark.parametrize(("dim", "folds"), [("M", 1), ("N", 0)])
def test_in_a_region_it_streams_what_a_rank_reduces_alone(dim: str, folds: int):
    """Statistics over a dimension that ranks share have collectives between them."""
    text = "collective.mesh @mesh {rank = 2}" + graph_text(OPS[0], (4, 3, 10))
    pipeline = f"decompose,distribute{{dim={dim} axes=rank}},insert-collectives,stream"
    module = run_passes(parse_module(text), pipeline)
    module.verify()
    assert sum(isinstance(op, FoldOp) for op in module.walk()) == folds


CHAINS = {
    "exponentials of differences to a mean": """
    %m = compound.reduce add %x : XN -> XM
    %s = compound.map sub %x, %m : XN, XM -> XN
    %e = compound.map exp %s : XN -> XN
    %r = compound.reduce add %e : XN -> XM
    """,
    "a maximum of shifted values": """
    %m = compound.reduce max %x : XN -> XM
    %s = compound.map sub %x, %m : XN, XM -> XN
    %r = compound.reduce max %s : XN -> XM
    """,
    "a mean with the wrong count": """
    %w = compound.fill 0.125 : tensor<f64, #compound.dims<>>
    %sum = compound.reduce add %x : XN -> XM
    %m = compound.map mult %sum, %w : XM, tensor<f64, #compound.dims<>> -> XM
    %d = compound.map sub %x, %m : XN, XM -> XN
    %q = compound.map mult %d, %d : XN, XN -> XN
    %r = compound.reduce add %q : XN -> XM
    """,
    "the difference the other way round": """
    %m = compound.reduce max %x : XN -> XM
    %s = compound.map sub %m, %x : XM, XN -> XN
    %e = compound.map exp %s : XN -> XN
    %r = compound.reduce add %e : XN -> XM
    """,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_rejects_a_chain_of_no_known_form_over_the_dimension_asked_for(chain: str):
    message = "'compound.reduce' op %r reduces N and needs 'compound.reduce' op %"
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(row_program(CHAINS[chain])), "stream{dim=N}")


@pytest.mark.parametrize("chain", CHAINS)
def test_leaves_a_chain_of_no_known_form(chain: str):
    before = parse_module(row_program(CHAINS[chain]))
    assert str(run_passes(before, "stream")) == str(before)


@pytest.mark.parametrize("options", ["", "{dim=N}"])
def test_rewrites_the_forms_that_it_knows_and_leaves_the_rest(options: str):
    """Softmax, and then a norm of its result by the root of the mean square."""
    body = (
        SOFTMAX_STATISTICS
        + """
    %p = compound.map div %e, %l : XN, XM -> XN
    %q = compound.map mult %p, %p : XN, XN -> XN
    %t = compound.reduce add %q : XN -> XM
    %w = compound.map rsqrt %t : XM -> XM
    %y = compound.map mult %p, %w : XN, XM -> XN
    %r = compound.reduce max %y : XN -> XM
    """
    )
    before = parse_module(row_program(body))
    after = run_passes(before, f"stream{options}")
    assert sum(isinstance(op, FoldOp) for op in after.walk()) == 1
    assert sum(isinstance(op, ReduceOp) for op in main_ops(after)) == 2
    assert_same_meaning(before, after, "main", chunks=lambda n: Steps((n - 2, 2)))


def main_ops(module: ModuleOp) -> list[Operation]:
    """Return the ops of @main, those in folds not among them."""
    return list(next(iter(module.ops)).regions[0].block.ops)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("decompose,stream{dim=Q}", "no op has the dimension Q; .* are K, M, N"),
        ("stream", "@main is at the graph level .* run decompose first"),
    ],
)
def test_rejects(pipeline: str, message: str):
    module = parse_module(graph_text(OPS[0], (4, 3, 10)))
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, pipeline)


TURNED_TYPES = """
!x = tensor<3x5x4xf32, #compound.dims<M, N, K>>
!r = tensor<3x4xf32, #compound.dims<M, K>>
!t = tensor<4x3xf32, #compound.dims<K, M>>
"""
TURNED = {
    "softmax": """
  %a = compound.reduce max %x : !x -> !r
  %s = compound.map sub %x, %a : !x, !r -> !x
  %e = compound.map exp %s : !x -> !x
  %b = compound.reduce add %e : !x -> !t""",
    "mean and variance": """
  %sum = compound.reduce add %x : !x -> !r
  %inverse_n = compound.fill 0.2 : tensor<f32, #compound.dims<>>
  %a = compound.map mult %sum, %inverse_n : !r, tensor<f32, #compound.dims<>> -> !r
  %d = compound.map sub %x, %a : !x, !r -> !x
  %q = compound.map mult %d, %d : !x, !x -> !x
  %b = compound.reduce add %q : !x -> !t""",
}
"""Statistics whose dimensions do not all are in one order."""


@pytest.mark.parametrize("form", TURNED)
def test_every_statistic_keeps_the_order_of_its_dimensions(form: str):
    body = f"func.func @main(%x: !x) -> (!r, !t) {{{TURNED[form]}"
    text = f"{TURNED_TYPES}{body}\n  func.return %a, %b : !r, !t\n}}"
    before = parse_module(text)
    after = run_passes(before, "stream")
    assert any(isinstance(op, FoldOp) for op in after.walk())
    after.verify()
    assert_same_meaning(before, after, "main", chunks=lambda n: Steps((1,) * n))


def test_weights_that_are_cast_are_summed_in_the_type_of_the_product():
    text = """
    func.func @main(%x: Row, %v: tensor<7x5xf32, #compound.dims<N, E>>) -> Mean {
      %m = compound.reduce max %x : Row -> Top
      %s = compound.map sub %x, %m : Row, Top -> Row
      %e = compound.map exp %s : Row -> Row
      %l = compound.reduce add %e : Row -> Top
      %p = compound.map div %e, %l : Row, Top -> Row
      %w = compound.cast %p : Row -> tensor<3x7xf32, #compound.dims<M, N>>
      %o = compound.contract %w, %v : tensor<3x7xf32, #compound.dims<M, N>>,
          tensor<7x5xf32, #compound.dims<N, E>> -> Mean
      func.return %o : Mean
    }
    """
    types = {
        "Row": "tensor<3x7xbf16, #compound.dims<M, N>>",
        "Top": "tensor<3xbf16, #compound.dims<M>>",
        "Mean": "tensor<3x5xf32, #compound.dims<M, E>>",
    }
    for name, type_ in types.items():
        text = text.replace(name, type_)
    before = parse_module(text)
    after = run_passes(before, "stream")
    assert any(isinstance(op, FoldOp) for op in after.walk())
    assert_same_meaning(before, after, "main", chunks=lambda n: Steps((1,) * n))


@pytest.mark.parametrize("order", ["%p, %f", "%f, %p"])
@pytest.mark.parametrize("dims", ["M, N", "N"])
def test_factors_of_weights_are_read_by_the_fold(order: str, dims: str):
    """They are no part of the sum of weights."""
    text = f"""
    !Row = tensor<3x7xf32, #compound.dims<M, N>>
    !Top = tensor<3xf32, #compound.dims<M>>
    !Factors = tensor<{"3x7" if "M" in dims else "7"}xf32, #compound.dims<{dims}>>
    !V = tensor<7x5xf32, #compound.dims<N, E>>
    func.func @main(%x: !Row, %v: !V, %f: !Factors)
        -> tensor<3x5xf32, #compound.dims<M, E>> {{
      %m = compound.reduce max %x : !Row -> !Top
      %s = compound.map sub %x, %m : !Row, !Top -> !Row
      %e = compound.map exp %s : !Row -> !Row
      %l = compound.reduce add %e : !Row -> !Top
      %p = compound.map div %e, %l : !Row, !Top -> !Row
      %w = compound.map mult {order} : OPERANDS -> !Row
      %o = compound.contract %w, %v : !Row, !V -> tensor<3x5xf32, #compound.dims<M, E>>
      func.return %o : tensor<3x5xf32, #compound.dims<M, E>>
    }}"""
    types = "!Row, !Factors" if order.startswith("%p") else "!Factors, !Row"
    before = parse_module(text.replace("OPERANDS", types))
    after = run_passes(before, "stream")
    (fold,) = (op for op in after.walk() if isinstance(op, FoldOp))
    assert len(fold.ins) == len(fold.init) == 3
    assert isinstance(form_of(fold), DropoutForm)
    generator = random.Random(3)
    for _ in range(3):
        assert_same_meaning(
            before, after, "main", chunks=lambda n: random_tree(n, generator)
        )


LATE = """
func.func @main(%x: tensor<3x7xf32, #compound.dims<M, N>>,
    %u: tensor<7x4xf32, #compound.dims<N, D>>,
    %w: tensor<4x5xf32, #compound.dims<D, E>>)
    -> tensor<3x5xf32, #compound.dims<M, E>> {{
  %m = compound.reduce max %x : Row -> Top
  %s = compound.map sub %x, %m : Row, Top -> Row
  %e = compound.map exp %s : Row -> Row
  %l = compound.reduce add %e : Row -> Top
  %p = compound.map div %e, %l : Row, Top -> Row
  %first = compound.reduce {kind} %x : Row -> tensor<7xf32, #compound.dims<N>>
  %h = compound.map mult %u, %first : tensor<7x4xf32, #compound.dims<N, D>>,
      tensor<7xf32, #compound.dims<N>> -> tensor<7x4xf32, #compound.dims<N, D>>
  %v = compound.contract %h, %w : tensor<7x4xf32, #compound.dims<N, D>>,
      tensor<4x5xf32, #compound.dims<D, E>> -> tensor<7x5xf32, #compound.dims<N, E>>
  %o = compound.contract %p, %v : Row, tensor<7x5xf32, #compound.dims<N, E>>
      -> tensor<3x5xf32, #compound.dims<M, E>>
  func.return %o : tensor<3x5xf32, #compound.dims<M, E>>
}}
"""


@pytest.mark.parametrize(("of", "iter_args"), [("%x", 3), ("%p", 2)])
def test_values_may_be_computed_later_if_they_do_not_need_the_maximum(
    of: str, iter_args: int
):
    text = LATE.format(kind="add").replace("reduce add %x", f"reduce add {of}")
    text = text.replace("Row", "tensor<3x7xf32, #compound.dims<M, N>>")
    before = parse_module(text.replace("Top", "tensor<3xf32, #compound.dims<M>>"))
    after = run_passes(before, "stream{dim=N}")
    (fold,) = (op for op in after.walk() if isinstance(op, FoldOp))
    assert len(fold.outs) == iter_args
    assert_same_meaning(before, after, "main", chunks=lambda n: Steps((1,) * n))
