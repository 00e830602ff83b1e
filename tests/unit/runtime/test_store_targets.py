"""The parameters that stores of Triton's IR go to."""

import pytest

from comet.runtime.store_targets import stores

KERNEL = """
module {{
  tt.func public @kernel(%x_ptr: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, \
%y_ptr: !tt.ptr<f32>, %bases: !tt.ptr<i64>, %n: i32) {{
{body}
    tt.store %to, %value {{cache_modifier = wt}} : tensor<16x!tt.ptr<f32>>
    tt.return
  }}
}}
"""

OWN = """
    %0 = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %to = tt.addptr %0, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
"""
OTHER_RANK = """
    %0 = tt.ptr_to_int %y_ptr : !tt.ptr<f32> -> i64
    %1 = tt.load %bases : !tt.ptr<i64>
    %2 = arith.addi %1, %0 : i64
    %to = tt.int_to_ptr %2 : i64 -> !tt.ptr<f32>
"""
OFFSET_FROM_TABLE = """
    %0 = tt.load %x_ptr : !tt.ptr<f32>
    %1 = tt.ptr_to_int %x_ptr : !tt.ptr<f32> -> i64
    %to = tt.addptr %y_ptr, %1 : !tt.ptr<f32>, i64
"""
IN_A_LOOP = """
    %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x_ptr, %q = %y_ptr) \
-> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
      %1 = tt.addptr %q, %c1 : !tt.ptr<f32>, i32
      scf.yield %p, %1 : !tt.ptr<f32>, !tt.ptr<f32>
    }
    %to = tt.splat %0#1 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
"""
IN_A_BRANCH = """
    %to = scf.if %where -> (!tt.ptr<f32>) {
      scf.yield %x_ptr : !tt.ptr<f32>
    } else {
      scf.yield %y_ptr : !tt.ptr<f32>
    }
"""
UNKNOWN = """
    %0 = tt.load %bases : !tt.ptr<i64>
    %to = tt.int_to_ptr %0 : i64 -> !tt.ptr<f32>
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (OWN, {"x_ptr"}),
        (OTHER_RANK, {"y_ptr"}),
        (OFFSET_FROM_TABLE, {"y_ptr"}),
        (IN_A_LOOP, {"y_ptr"}),
        (IN_A_BRANCH, {"x_ptr", "y_ptr"}),
        (UNKNOWN, set[str]()),
    ],
)
def test_pointers_are_followed_to_parameters(body: str, expected: set[str]):
    (store,) = stores(KERNEL.format(body=body))
    assert store.parameters == expected
    assert "= wt" in store.line


def test_a_pointer_that_is_carried_by_a_loop_is_known_in_it():
    body = """
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x_ptr) -> (!tt.ptr<f32>) {
      tt.store %p, %one : !tt.ptr<f32>
      %1 = tt.addptr %p, %c1 : !tt.ptr<f32>, i32
      scf.yield %1 : !tt.ptr<f32>
    }
    %to = tt.addptr %y_ptr, %n : !tt.ptr<f32>, i32
"""
    found = [store.parameters for store in stores(KERNEL.format(body=body))]
    assert found == [{"x_ptr"}, {"y_ptr"}]
