// RUN: comet-opt %s -p group-sums | filecheck %s

!A = tensor<4x8xf32, #compound.dims<M, K>>
!B = tensor<2x8xf32, #compound.dims<N, K>>
!Y = tensor<4x2xf32, #compound.dims<M, N>>
!G = tensor<4x8xbf16, #compound.dims<M, K>>
!I = tensor<2x8xbf16, #compound.dims<N, K>>
!H = tensor<4x2xbf16, #compound.dims<M, N>>

// Both products sum over K: a kernel adds them in one loop.

func.func @residual(%a: !A, %b: !B, %x: !Y) -> !Y {
  %p = compound.contract %a, %b : !A, !B -> !Y
  %s = compound.map add %x, %p : !Y, !Y -> !Y
  %q = compound.contract %a, %b : !A, !B -> !Y
  %y = compound.map add %s, %q : !Y, !Y -> !Y
  func.return %y : !Y
}

// CHECK-LABEL: func.func @residual
// CHECK-NEXT:    %p = compound.contract %a, %b
// CHECK-NEXT:    %q = compound.contract %a, %b
// CHECK-NEXT:    %y = compound.map add %p, %q
// CHECK-NEXT:    %y_1 = compound.map add %y, %x
// CHECK-NEXT:    func.return %y_1

// One product is no group, and what something else reads is added where it was.

func.func @kept(%a: !A, %b: !B, %x: !Y) -> (!Y, !Y) {
  %p = compound.contract %a, %b : !A, !B -> !Y
  %s = compound.map add %x, %p : !Y, !Y -> !Y
  %q = compound.contract %a, %b : !A, !B -> !Y
  %y = compound.map add %s, %q : !Y, !Y -> !Y
  func.return %s, %y : !Y, !Y
}

// CHECK-LABEL: func.func @kept
// CHECK:         %s = compound.map add %x, %p
// CHECK:         %y = compound.map add %s, %q

// Sums of 16 bits are rounded at each addition.

func.func @short(%a: !G, %b: !I, %x: !H) -> !H {
  %p = compound.contract %a, %b : !G, !I -> !H
  %s = compound.map add %x, %p : !H, !H -> !H
  %q = compound.contract %a, %b : !G, !I -> !H
  %y = compound.map add %s, %q : !H, !H -> !H
  func.return %y : !H
}

// CHECK-LABEL: func.func @short
// CHECK:         %s = compound.map add %x, %p
// CHECK:         %y = compound.map add %s, %q
