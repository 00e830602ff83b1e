// RUN: comet-opt %s -t triton | filecheck %s

// In Triton's interpreter the index of a loop is an integer of Python, which has no method to convert it.

tl.kernel @f_kernel(%y: !tl.ptr<i64>, %N: !tl.constexpr<4>) {
  %zero = tl.constant 0 : i32
  %one = tl.constant 1 : i32
  tl.for %e : i32 = %zero : i32 to %N : !tl.constexpr<4> step %one : i32 {
    %wide = tl.cast %e : i32 -> i64
    %to = tl.addptr %y, %e : (!tl.ptr<i64>, i32) -> !tl.ptr<i64>
    tl.store %to, %wide : !tl.ptr<i64>, i64
    tl.yield
  }
}
func.func @f(%x: tensor<4xi64>) -> tensor<4xi64> {
  %y = tl.empty : tensor<4xi64>
  tl.launch @f_kernel grid [1] warps 4 stages 1 on %y : tensor<4xi64>
  func.return %y : tensor<4xi64>
}
func.func private @f__reference(%x: tensor<4xi64, #compound.dims<N>>) -> tensor<4xi64, #compound.dims<N>> attributes {comet.reference} {
  %y = compound.index : tensor<4xi64, #compound.dims<N>>
  func.return %y : tensor<4xi64, #compound.dims<N>>
}

// CHECK:      for e in range(N):
// CHECK-NEXT:     wide = tl.cast(e, tl.int64)
