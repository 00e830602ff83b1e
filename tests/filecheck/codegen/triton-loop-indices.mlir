// RUN: comet-opt %s -t triton | filecheck %s

// To Triton the index of a loop that has ended is still a variable, of an integer: in a later loop, only an index may have its name.

tl.kernel @f_kernel(%x: !tl.ptr<f32>, %y: !tl.ptr<f32>, %N: !tl.constexpr<4>) {
  %zero = tl.constant 0 : i32
  %one = tl.constant 1 : i32
  %init = tl.full 0.0 : f32 dims %N : !tl.constexpr<4> -> tensor<4xf32>
  %offs = tl.arange %N : !tl.constexpr<4> -> tensor<4xi32>
  %at = tl.addptr %x, %offs : (!tl.ptr<f32>, tensor<4xi32>) -> tensor<4x!tl.ptr<f32>>
  %sum = tl.for %e : i32 = %zero : i32 to %N : !tl.constexpr<4> step %one : i32 iter_args(%acc = %init) -> (tensor<4xf32>) {
    %v = tl.load %at : tensor<4x!tl.ptr<f32>> -> tensor<4xf32>
    %next = tl.binary add %acc, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tl.yield %next : tensor<4xf32>
  }
  %all = tl.for %n : i32 = %zero : i32 to %N : !tl.constexpr<4> step %one : i32 iter_args(%acc = %sum) -> (tensor<4xf32>) {
    %inner = tl.for %e : i32 = %zero : i32 to %N : !tl.constexpr<4> step %one : i32 iter_args(%acc_1 = %acc) -> (tensor<4xf32>) {
      %v = tl.load %at : tensor<4x!tl.ptr<f32>> -> tensor<4xf32>
      %next = tl.binary add %acc_1, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      tl.yield %next : tensor<4xf32>
    }
    %e = tl.load %at : tensor<4x!tl.ptr<f32>> -> tensor<4xf32>
    %next = tl.binary add %inner, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tl.yield %next : tensor<4xf32>
  }
  %to = tl.addptr %y, %offs : (!tl.ptr<f32>, tensor<4xi32>) -> tensor<4x!tl.ptr<f32>>
  tl.store %to, %all : tensor<4x!tl.ptr<f32>>, tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tl.empty : tensor<4xf32>
  tl.launch @f_kernel grid [1] warps 4 stages 1 on %x, %y : tensor<4xf32>, tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @f__reference(%x: tensor<4xf32, #compound.dims<N>>) -> tensor<4xf32, #compound.dims<N>> attributes {comet.reference} {
  %n = compound.fill 24.0 : tensor<f32, #compound.dims<>>
  %y = compound.map mult %x, %n : tensor<4xf32, #compound.dims<N>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<N>>
  func.return %y : tensor<4xf32, #compound.dims<N>>
}

// CHECK:      for e in range(N):
// CHECK:      for n in range(N):
// CHECK:          for e in range(N):
// CHECK:          e_1 = tl.load(
