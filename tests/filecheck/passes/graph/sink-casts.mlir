// RUN: comet-opt %s -p sink-casts | filecheck %s

// The cast has two readers, and a view of it shows what is before it.

!X = tensor<6x4xf32, #compound.dims<M, N>>
!H = tensor<6x4xf16, #compound.dims<M, N>>
!T = tensor<6x4xf16, #compound.dims<L, N>>
!S = tensor<6x6xf32, #compound.dims<M, L>>
func.func @scores(%x: !X) -> (!S, !X) {
  %e = compound.map exp %x : !X -> !X
  %h = compound.cast %e : !X -> !H
  %t = compound.rename %h : !H -> !T
  %s = compound.contract %h, %t : !H, !T -> !S
  func.return %s, %e : !S, !X
}

// CHECK-LABEL: func.func @scores
// CHECK-NEXT:    %e = compound.map exp %x
// CHECK-NEXT:    %h = compound.cast %e
// CHECK-NEXT:    %[[SHOWN:[^ ]*]] = compound.rename %e : tensor<6x4xf32, #compound.dims<M, N>> -> tensor<6x4xf32, #compound.dims<L, N>>
// CHECK-NEXT:    %[[CAST:[^ ]*]] = compound.cast %[[SHOWN]] : tensor<6x4xf32, #compound.dims<L, N>> -> tensor<6x4xf16, #compound.dims<L, N>>
// CHECK-NEXT:    %s = compound.contract %h, %[[CAST]]
