// RUN: comet-opt %s -p decompose | filecheck %s

!table = tensor<11x6xf32, #compound.dims<V, K>>
!ids = tensor<7xi32, #compound.dims<M>>
!x = tensor<7x6xf32, #compound.dims<M, K>>
!w = tensor<6x9xf32, #compound.dims<K, N>>
!h = tensor<7x9xf32, #compound.dims<M, N>>
!u = tensor<9x9xf32, #compound.dims<A, N>>

// The second product calls the dimension that it sums over A: its result has N already.
func.func @f(%table: !table, %ids: !ids, %w: !w, %u: !u) -> !h {
  %x = compound.gather %table, %ids along "V" : !table, !ids -> !x
  %h = compound.gemm %x, %w : (!x, !w) -> !h
  %y = compound.gemm %h, %u : (!h, !u) -> !h
  func.return %y : !h
}

// CHECK:      func.func @f(%table: tensor<11x6xf32, #compound.dims<V, K>>, %ids: tensor<7xi32, #compound.dims<M>>, %w: tensor<6x9xf32, #compound.dims<K, N>>, %u: tensor<9x9xf32, #compound.dims<A, N>>) -> tensor<7x9xf32, #compound.dims<M, N>> {
// CHECK-NEXT:   %x = compound.gather %table, %ids along "V"
// CHECK-NEXT:   %h = compound.contract %x, %w : tensor<7x6xf32, #compound.dims<M, K>>, tensor<6x9xf32, #compound.dims<K, N>> -> tensor<7x9xf32, #compound.dims<M, N>>
// CHECK-NEXT:   %h_1 = compound.rename %h : tensor<7x9xf32, #compound.dims<M, N>> -> tensor<7x9xf32, #compound.dims<M, A>>
// CHECK-NEXT:   %y = compound.contract %h_1, %u : tensor<7x9xf32, #compound.dims<M, A>>, tensor<9x9xf32, #compound.dims<A, N>> -> tensor<7x9xf32, #compound.dims<M, N>>
// CHECK-NEXT:   func.return %y
