"""`group-sums`: products over the same dimensions are added first."""

import pytest
from covering import one_of
from semantics import assert_same_meaning, parse_module, run_passes
from sum_programs import program

from comet.dialects.compound import MapOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.group_sums import plan_sums


@one_of(6)
@pytest.mark.parametrize("seed", range(30))
def test_random_sums_keep_their_meaning(seed: int):
    before = parse_module(program(seed))
    after = run_passes(before, "group-sums")
    assert_same_meaning(before, after, "main", seed=seed)
    (func,) = compute_functions(after)
    assert plan_sums(func) == ()
    counts = [
        sum(isinstance(op, MapOp) for op in module.walk()) for module in (before, after)
    ]
    assert counts[0] == counts[1]


def test_a_group_is_what_products_sum_over():
    """K first, then H and E, which two products sum over; the other value last."""
    text = """
!A = tensor<3x5xf32, #compound.dims<M, K>>
!B = tensor<7x5xf32, #compound.dims<N, K>>
!C = tensor<3x2x4xf32, #compound.dims<M, H, E>>
!D = tensor<7x2x4xf32, #compound.dims<N, H, E>>
!Y = tensor<3x7xf32, #compound.dims<M, N>>
func.func @main(%a: !A, %b: !B, %c: !C, %d: !D, %x: !Y) -> !Y {
  %p = compound.contract %a, %b : !A, !B -> !Y
  %q = compound.contract %c, %d : !C, !D -> !Y
  %r = compound.contract %c, %d : !C, !D -> !Y
  %s = compound.map add %x, %p : !Y, !Y -> !Y
  %t = compound.map add %s, %q : !Y, !Y -> !Y
  %u = compound.map add %t, %r : !Y, !Y -> !Y
  func.return %u : !Y
}
"""
    (func,) = compute_functions(parse_module(text))
    (total,) = plan_sums(func)
    names = [[value.name_hint for value in group] for group in total.groups]
    assert names == [["p"], ["q", "r"], ["x"]]
    assert [op.result.name_hint for op in total.additions] == ["t", "s"]
