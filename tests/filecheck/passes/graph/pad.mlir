// RUN: comet-opt %s -p 'pad{to="N=8"}' | filecheck %s
// RUN: comet-opt %s -p 'pad{to="M=6,K=8"}' | filecheck %s --check-prefix=ROWS
// RUN: comet-opt %s -p 'pad{to="N=5,K=7"}' | filecheck %s --check-prefix=SAME

!MK = tensor<4x7xf16, #compound.dims<M, K>>
!KN = tensor<7x5xf16, #compound.dims<K, N>>
!MN = tensor<4x5xf16, #compound.dims<M, N>>
!M = tensor<4xf16, #compound.dims<M>>
!N = tensor<5xf16, #compound.dims<N>>
!one = tensor<f16, #compound.dims<>>

// -inf before the maximum; its exponential 0 is neutral for the sum.
func.func @softmax(%a: !MK, %b: !KN) -> !MN {
  %c = compound.contract %a, %b : !MK, !KN -> !MN
  %m = compound.reduce max %c : !MN -> !M
  %s = compound.map sub %c, %m : !MN, !M -> !MN
  %e = compound.map exp %s : !MN -> !MN
  %l = compound.reduce add %e : !MN -> !M
  %p = compound.map div %e, %l : !MN, !M -> !MN
  func.return %p : !MN
}

// CHECK-LABEL: func.func @softmax(%a: tensor<4x7xf16, #compound.dims<M, K>>, %b: tensor<7x5xf16, #compound.dims<K, N>>) -> tensor<4x5xf16, #compound.dims<M, N>> {
// CHECK-NEXT:    %b_1 = compound.pad %b <0.0 from N = 5> : tensor<7x5xf16, #compound.dims<K, N>> -> tensor<7x8xf16, #compound.dims<K, N>>
// CHECK-NEXT:    %c = compound.contract %a, %b_1 : tensor<4x7xf16, #compound.dims<M, K>>, tensor<7x8xf16, #compound.dims<K, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:    %c_1 = compound.pad %c <-inf from N = 5> : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:    %m = compound.reduce max %c_1
// CHECK-NEXT:    %s = compound.map sub %c_1, %m
// CHECK-NEXT:    %e = compound.map exp %s
// CHECK-NEXT:    %l = compound.reduce add %e
// CHECK-NEXT:    %p = compound.map div %e, %l : tensor<4x8xf16, #compound.dims<M, N>>, tensor<4xf16, #compound.dims<M>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:    %p_1 = compound.slice %p : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4x5xf16, #compound.dims<M, N>>
// CHECK-NEXT:    func.return %p_1

// Nothing reduces rows, and zeros add nothing to a product: no mask.
// ROWS-LABEL: func.func @softmax
// ROWS-NEXT:    compound.pad %a <0.0 from M = 4, K = 7> : tensor<4x7xf16, #compound.dims<M, K>> -> tensor<6x8xf16, #compound.dims<M, K>>
// ROWS-NEXT:    compound.pad %b <0.0 from K = 7>
// ROWS-NEXT:    compound.contract
// ROWS-NEXT:    compound.reduce max

// Extents that the function has already: nothing changes.
// SAME-LABEL: func.func @softmax
// SAME-NEXT:    %c = compound.contract %a, %b
// SAME-NOT:     compound.pad

// The number of elements stays 5; the squares of padding are not 0, so they are masked.
func.func @variance(%x: !MN) -> !M {
  %n = compound.extent "N" of %x : !MN -> !one
  %sum = compound.reduce add %x : !MN -> !M
  %mean = compound.map div %sum, %n : !M, !one -> !M
  %centred = compound.map sub %x, %mean : !MN, !M -> !MN
  %square = compound.map mult %centred, %centred : !MN, !MN -> !MN
  %squares = compound.reduce add %square : !MN -> !M
  %variance = compound.map div %squares, %n : !M, !one -> !M
  func.return %variance : !M
}

// CHECK-LABEL: func.func @variance
// CHECK-NEXT:    %x_1 = compound.pad %x <0.0 from N = 5>
// CHECK-NEXT:    %n = compound.fill 5.000000e+00
// CHECK-NEXT:    %sum = compound.reduce add %x_1
// CHECK-NEXT:    %mean = compound.map div %sum, %n
// CHECK-NEXT:    %centred = compound.map sub %x_1, %mean
// CHECK-NEXT:    %square = compound.map mult %centred, %centred
// CHECK-NEXT:    %square_1 = compound.pad %square <0.0 from N = 5>
// CHECK-NEXT:    %squares = compound.reduce add %square_1
// CHECK-NEXT:    %variance = compound.map div %squares, %n
// CHECK-NEXT:    func.return %variance

// An argument that is reduced as it is holds what its first reduction needs.
func.func @maximum(%x: !MN) -> (!M, !M) {
  %top = compound.reduce max %x : !MN -> !M
  %sum = compound.reduce add %x : !MN -> !M
  func.return %top, %sum : !M, !M
}

// CHECK-LABEL: func.func @maximum
// CHECK-NEXT:    %x_1 = compound.pad %x <-inf from N = 5>
// CHECK-NEXT:    %top = compound.reduce max %x_1
// CHECK-NEXT:    %x_2 = compound.pad %x_1 <0.0 from N = 5> : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:    %sum = compound.reduce add %x_2

// Neither operand of the product is 0 in the padding of N: one of them is masked.
func.func @product(%a: !MN, %v: !N) -> (!M, !N) {
  %e = compound.map exp %a : !MN -> !MN
  %w = compound.map exp %v : !N -> !N
  %y = compound.contract %e, %w : !MN, !N -> !M
  func.return %y, %v : !M, !N
}

// CHECK-LABEL: func.func @product
// CHECK:         %e = compound.map exp %a_1
// CHECK-NEXT:    %w = compound.map exp %v_1
// CHECK-NEXT:    %e_1 = compound.pad %e <0.0 from N = 5>
// CHECK-NEXT:    %y = compound.contract %e_1, %w
// CHECK-NEXT:    func.return %y, %v :

// A dimension by two names is padded by both.
func.func @renamed(%x: !MN) -> tensor<4x5xf16, #compound.dims<M, P>> {
  %y = compound.rename %x : !MN -> tensor<4x5xf16, #compound.dims<M, P>>
  %z = compound.map neg %y : tensor<4x5xf16, #compound.dims<M, P>> -> tensor<4x5xf16, #compound.dims<M, P>>
  func.return %z : tensor<4x5xf16, #compound.dims<M, P>>
}

// CHECK-LABEL: func.func @renamed
// CHECK:         %y = compound.rename %x_1 : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, P>>
// CHECK:         compound.slice %z : tensor<4x8xf16, #compound.dims<M, P>> -> tensor<4x5xf16, #compound.dims<M, P>>
