// RUN: comet-opt %s -p expand-vectors | filecheck %s

// The vector of a product, and what depends on it, is a matrix of one row; a bias and a matrix stay.

!V = tensor<64xf16, #compound.dims<K>>
!W = tensor<64x96xf16, #compound.dims<K, N>>
!Y = tensor<96xf16, #compound.dims<N>>
func.func @f(%x: !V, %w: !W, %b: !Y) -> !Y {
  %n = compound.map neg %x : !V -> !V
  %c = compound.contract %n, %w : !V, !W -> !Y
  %y = compound.map add %c, %b : !Y, !Y -> !Y
  func.return %y : !Y
}

// CHECK:      func.func @f(%x: tensor<1x64xf16, #compound.dims<R, K>>, %w: tensor<64x96xf16, #compound.dims<K, N>>, %b: tensor<96xf16, #compound.dims<N>>) -> tensor<1x96xf16, #compound.dims<R, N>> {
// CHECK-NEXT:   %n = compound.map neg %x : tensor<1x64xf16, #compound.dims<R, K>> -> tensor<1x64xf16, #compound.dims<R, K>>
// CHECK-NEXT:   %c = compound.contract %n, %w : tensor<1x64xf16, #compound.dims<R, K>>, tensor<64x96xf16, #compound.dims<K, N>> -> tensor<1x96xf16, #compound.dims<R, N>>
// CHECK-NEXT:   %y = compound.map add %c, %b : tensor<1x96xf16, #compound.dims<R, N>>, tensor<96xf16, #compound.dims<N>> -> tensor<1x96xf16, #compound.dims<R, N>>
// CHECK-NEXT:   func.return %y : tensor<1x96xf16, #compound.dims<R, N>>

// A product of two vectors has no matrix, and stays.

func.func @dot(%x: !V, %y: !V) -> tensor<f16, #compound.dims<>> {
  %c = compound.contract %x, %y : !V, !V -> tensor<f16, #compound.dims<>>
  func.return %c : tensor<f16, #compound.dims<>>
}

// CHECK:      func.func @dot(%x: tensor<64xf16, #compound.dims<K>>
