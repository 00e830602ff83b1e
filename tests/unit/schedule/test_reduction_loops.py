"""
The analysis of reduction loops: how many, what each computes, what crosses between
them.
"""

from gpu_graphs import (
    ATTENTION,
    EACH_KEPT_BY_THE_OTHER,
    GATED_PRODUCT,
    KEY_GRADIENTS,
    REDUCED_THEN_KEPT,
    SOFTMAX,
    STATISTICS,
    TWO_PRODUCTS,
)
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.reduction_loops import (
    ReductionLoop,
    crossing_values,
    looped_dims,
    nested_loops,
    plan_reduction_loops,
    reduction_loop_counts,
    without_constants,
)


def body(module: ModuleOp) -> tuple[Operation, ...]:
    (function,) = compute_functions(module)
    return without_constants(tuple(function.body.block.ops)[:-1])


def softmax(pipeline: str = "decompose") -> tuple[Operation, ...]:
    text = SOFTMAX.format(M=7, N=13, K=5)
    return body(run_passes(parse_module(text), pipeline))


def named(ops: tuple[Operation, ...], name: str) -> SSAValue:
    """Return the value with a name hint."""
    values = [value for op in ops for value in op.results]
    return next(value for value in values if value.name_hint == name)


def hints(values: tuple[SSAValue, ...]) -> list[str | None]:
    return [value.name_hint for value in values]


def made(reduction_loop: ReductionLoop) -> list[str | None]:
    return [op.results[0].name_hint for op in reduction_loop.ops]


def test_a_reduction_ends_a_reduction_loop() -> None:
    assert reduction_loop_counts(softmax()) == {"N": 3, "K": 1}
    assert reduction_loop_counts(softmax("decompose,stream"))["N"] == 2


def test_a_chain_of_reductions_of_one_value_needs_one_reduction_loop() -> None:
    assert reduction_loop_counts(body(parse_module(TWO_PRODUCTS)))["N"] == 1
    assert reduction_loop_counts(body(parse_module(STATISTICS)))["C"] == 2
    assert reduction_loop_counts(body(parse_module(ATTENTION)))["N"] == 2


def test_loops_over_what_is_reduced_last_are_outermost() -> None:
    assert looped_dims(softmax()) == ("N", "K")
    assert looped_dims(body(parse_module(TWO_PRODUCTS))) == ("N", "K")
    assert looped_dims(body(parse_module(GATED_PRODUCT))) == ("K",)


def nest(text: str) -> tuple[str, ...]:
    ops = body(parse_module(text))
    extents = {"K": 17, "L": 8, "M": 6, "N": 4}
    return nested_loops(ops, looped_dims(ops), extents)


def test_a_loop_is_inside_those_over_what_its_sums_keep() -> None:
    assert looped_dims(body(parse_module(REDUCED_THEN_KEPT))) == ("K", "M", "L")
    assert nest(REDUCED_THEN_KEPT) == ("M", "L", "K")
    assert nest(ATTENTION) == looped_dims(body(parse_module(ATTENTION)))


def test_of_two_loops_that_exclude_each_other_the_shorter_is_none() -> None:
    assert set(looped_dims(body(parse_module(EACH_KEPT_BY_THE_OTHER)))) == {"M", "N"}
    assert nest(EACH_KEPT_BY_THE_OTHER) == ("M",)


def test_of_excluding_loops_that_over_single_elements_stays() -> None:
    """Scores keep the heads R, which the gradients of keys sum: blocks of R are 1."""
    ops = body(parse_module(KEY_GRADIENTS.format(M=16, N=16)))
    extents = {"K": 2, "R": 3, "M": 16, "N": 16, "E": 8}
    assert set(looped_dims(ops)) == {"R", "M", "E"}
    assert set(nested_loops(ops, looped_dims(ops), extents)) == {"R", "M"}


def test_later_loops_recompute_what_they_need() -> None:
    ops = softmax()
    plan = plan_reduction_loops(ops, "N", set(ops[-1].results))
    assert [made(reduction_loop) for reduction_loop in plan.reduction_loops] == [
        ["c", "m"],
        ["c", "s", "e", "l"],
        ["c", "s", "e", "p", "p"],
    ]
    assert [
        hints(reduction_loop.outputs) for reduction_loop in plan.reduction_loops
    ] == [["m"], ["l"], ["p"]]
    assert plan.between == ((), (), (), ())


def test_a_spilled_tile_is_yielded_once_and_not_recomputed() -> None:
    ops = softmax()
    plan = plan_reduction_loops(ops, "N", set(ops[-1].results), {named(ops, "c")})
    assert hints(plan.reduction_loops[0].outputs) == ["m", "c"]
    assert [made(reduction_loop) for reduction_loop in plan.reduction_loops] == [
        ["c", "m"],
        ["s", "e", "l"],
        ["s", "e", "p", "p"],
    ]


def test_ops_without_the_dimension_are_between_reduction_loops() -> None:
    ops = body(parse_module(STATISTICS))
    plan = plan_reduction_loops(ops, "C", {*ops[-1].results, named(ops, "m")})
    assert [[op.results[0].name_hint for op in part] for part in plan.between] == [
        [],
        ["m"],
        [],
    ]


def test_all_results_of_a_fold_leave_its_loop() -> None:
    ops = softmax("decompose,stream")
    plan = plan_reduction_loops(ops, "N", set(ops[-1].results))
    assert hints(plan.reduction_loops[0].outputs) == ["m", "l"]


def test_crossing_values() -> None:
    assert hints(crossing_values(softmax(), "N")) == ["c", "e"]


SUM = """
!A = tensor<4x6xf32, #compound.dims<M, K>>
!B = tensor<5x6xf32, #compound.dims<N, K>>
!V = tensor<6xf32, #compound.dims<K>>
!R = tensor<4xf32, #compound.dims<M>>
!Y = tensor<4x5xf32, #compound.dims<M, N>>
func.func @main(%a: !A, %b: !B, %v: !V, %x: !Y) -> (!Y, !Y) {
  %p = compound.contract %a, %b : !A, !B -> !Y
  %q = compound.contract %a, %b : !A, !B -> !Y
  %r = compound.contract %a, %v : !A, !V -> !R
  %s = compound.map add %p, %q : !Y, !Y -> !Y
  %t = compound.map add %s, %r : !Y, !R -> !Y
  %u = compound.map add %t, %x : !Y, !Y -> !Y
  func.return %u, %t : !Y, !Y
}
"""


def test_a_sum_of_products_is_in_their_loop() -> None:
    """Not with a product of fewer dimensions, nor with what is no product."""
    ops = body(parse_module(SUM))
    wanted = (named(ops, "u"), named(ops, "t"))
    plan = plan_reduction_loops(ops, "K", wanted)
    (loop,) = plan.reduction_loops
    assert made(loop) == ["p", "q", "r", "s"]
    assert hints(loop.outputs) == ["r", "s"]
    assert [op.results[0].name_hint for op in plan.between[1]] == ["t", "u"]


def test_a_product_that_is_stored_is_summed_apart() -> None:
    ops = body(parse_module(SUM))
    wanted = (named(ops, "u"), named(ops, "t"), named(ops, "q"))
    plan = plan_reduction_loops(ops, "K", wanted)
    (loop,) = plan.reduction_loops
    assert made(loop) == ["p", "q", "r"]
