// RUN: comet-opt %s -p stream | filecheck %s
// Weights of which random numbers drop some are a part of the fold: their sum l has all of them.

!X = tensor<3x5xf32, #compound.dims<M, N>>
!V = tensor<5x6xf32, #compound.dims<N, E>>
!O = tensor<3x6xf32, #compound.dims<M, E>>
!M = tensor<3xf32, #compound.dims<M>>
func.func @attention(%x: !X, %v: !V, %factors: !X) -> !O {
  %m = compound.reduce max %x : !X -> !M
  %s = compound.map sub %x, %m : !X, !M -> !X
  %e = compound.map exp %s : !X -> !X
  %l = compound.reduce add %e : !X -> !M
  %p = compound.map div %e, %l : !X, !M -> !X
  %kept = compound.map mult %p, %factors : !X, !X -> !X
  %o = compound.contract %kept, %v : !X, !V -> !O
  func.return %o : !O
}

// CHECK:      %m, %l, %o = compound.fold over "N" ins(%x, %v, %factors :
// CHECK:          %added = compound.reduce add %e : tensor<3x5xf32, #compound.dims<M, N>> -> tensor<3xf32, #compound.dims<M>>
// CHECK-NEXT:     %scaled = compound.map mult %e, %factors_1 : tensor<3x5xf32, #compound.dims<M, N>>, tensor<3x5xf32, #compound.dims<M, N>> -> tensor<3x5xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %ev = compound.contract %scaled, %v_1 :
// CHECK:      } -> tensor<3xf32, #compound.dims<M>>, tensor<3xf32, #compound.dims<M>>, tensor<3x6xf32, #compound.dims<M, E>>
// CHECK-NEXT:   %o_3 = compound.map div %o, %l :
// CHECK-NEXT:   func.return %o_3 :
