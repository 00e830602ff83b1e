// RUN: comet-opt %s -p use-ge | filecheck %s

// Positions before a length, and those after another one; numbers of other types and numbers that are no positions stay.

!lens = tensor<4xi32, #compound.dims<M>>
!n = tensor<8xi32, #compound.dims<N>>
!b = tensor<4x8xi1, #compound.dims<M, N>>
func.func @f(%lens: !lens, %x: tensor<4xf32, #compound.dims<M>>) -> (!b, !b, !b, tensor<4xi1, #compound.dims<M>>) {
  %n = compound.index : !n
  %before = compound.map gt %lens, %n : !lens, !n -> !b
  %after = compound.map gt %n, %lens : !n, !lens -> !b
  %at = compound.index : tensor<8xf32, #compound.dims<N>>
  %floats = compound.map gt %x, %at : tensor<4xf32, #compound.dims<M>>, tensor<8xf32, #compound.dims<N>> -> !b
  %two = compound.fill 2 : tensor<i32, #compound.dims<>>
  %counts = compound.map gt %lens, %two : !lens, tensor<i32, #compound.dims<>> -> tensor<4xi1, #compound.dims<M>>
  func.return %before, %after, %floats, %counts : !b, !b, !b, tensor<4xi1, #compound.dims<M>>
}

// CHECK-LABEL: func.func @f
// CHECK:         %n = compound.index
// CHECK-NEXT:    %[[ONE:.*]] = compound.fill 1.0{{.*}} : tensor<i32, #compound.dims<>>
// CHECK-NEXT:    %lens_last = compound.map sub %lens, %[[ONE]]
// CHECK-NEXT:    %before = compound.map ge %lens_last, %n
// CHECK-NEXT:    %[[ONE_1:.*]] = compound.fill 1.0{{.*}} : tensor<i32, #compound.dims<>>
// CHECK-NEXT:    %lens_first = compound.map add %lens, %[[ONE_1]]
// CHECK-NEXT:    %after = compound.map ge %n, %lens_first
// CHECK:         %floats = compound.map gt %x, %at
// CHECK:         %counts = compound.map gt %lens, %two
