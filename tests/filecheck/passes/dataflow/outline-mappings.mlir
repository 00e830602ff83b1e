// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},outline-mappings' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},outline-mappings{mappings="e; d; z"}' | filecheck %s --check-prefix=HAND

!X = tensor<6x4xf32, #compound.dims<M, N>>
!T = tensor<6x4xf32, #compound.dims<M, K>>
!W = tensor<4x8xf32, #compound.dims<K, N>>
!Z = tensor<6x8xf32, #compound.dims<M, N>>
!H = tensor<6x4xf32, #compound.dims<M, N>>

// A view of what is computed, with two extents of N on its two sides; %d could be in
// both mappings, and is in the first; a slice is a view of the result.
func.func @f(%x: !X, %w: !W) -> (!H, !X) {
  %two = compound.fill 2.0 : tensor<f32, #compound.dims<>>
  %e = compound.map exp %x : !X -> !X
  %d = compound.map mult %e, %two : !X, tensor<f32, #compound.dims<>> -> !X
  %t = compound.rename %e : !X -> !T
  %s = compound.map mult %t, %two : !T, tensor<f32, #compound.dims<>> -> !T
  %z = compound.contract %s, %w : !T, !W -> !Z
  %h = compound.slice %z "N" [2, 4] : !Z -> !H
  func.return %h, %d : !H, !X
}

// CHECK:       func.func @f(%x: tensor<6x4xf32, #compound.dims<M, N>>, %w:
// CHECK-NEXT:    %e, %d = dataflow.mapping @f_1 ins(%x : tensor<6x4xf32, #compound.dims<M, N>>) -> tensor<6x4xf32, #compound.dims<M, N>>, tensor<6x4xf32, #compound.dims<M, N>>
// CHECK-NEXT:    %t = compound.rename %e
// CHECK-NEXT:    %z = dataflow.mapping @f_2 ins(%t, %w :
// CHECK-NEXT:    %h = compound.slice %z "N"[2, 4]
// CHECK-NEXT:    func.return %h, %d
// CHECK:       builtin.module @f_1 {
// CHECK-NEXT:    arch.system @edge
// CHECK:         collective.mesh @edge
// CHECK-NEXT:    func.func @f_1(%x: tensor<6x4xf32, #compound.dims<M, N>>) -> (tensor<6x4xf32, #compound.dims<M, N>>, tensor<6x4xf32, #compound.dims<M, N>>) {
// CHECK-NEXT:      %two = compound.fill
// CHECK-NEXT:      %e = compound.map exp %x
// CHECK-NEXT:      %d = compound.map mult %e, %two
// CHECK-NEXT:      func.return %e, %d
// CHECK:       builtin.module @f_2 {
// CHECK:         func.func @f_2(%t: tensor<6x4xf32, #compound.dims<M, K>>, %w: tensor<4x8xf32, #compound.dims<K, N>>) -> tensor<6x8xf32, #compound.dims<M, N>> {
// CHECK-NEXT:      %two = compound.fill
// CHECK-NEXT:      %s = compound.map mult %t, %two
// CHECK-NEXT:      %z = compound.contract %s, %w
// CHECK-NEXT:      func.return %z

// HAND:       %e = dataflow.mapping @f_1 ins(%x :
// HAND-NEXT:  %d = dataflow.mapping @f_2 ins(%e :
// HAND-NEXT:  %t = compound.rename %e
// HAND-NEXT:  %z = dataflow.mapping @f_3 ins(%t, %w :
// HAND-NEXT:  %h = compound.slice %z
