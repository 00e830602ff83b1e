// RUN: comet-opt %s -p 'split{dim=D parts=2 products=c}' | filecheck %s
// RUN: not comet-opt %s -p 'split{dim=D parts=2 products=y}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not comet-opt %s -p 'split{dim=D parts=4 products=c}' 2>&1 | filecheck %s --check-prefix=PARTS

// The product %c alone is split, with the elementwise ops before it that read arguments
// only: %h is still returned with D. The sum %e of another product is viewed in parts.
!MD = tensor<4x6xf32, #compound.dims<M, D>>
!D = tensor<6xf32, #compound.dims<D>>
!DN = tensor<6x8xf32, #compound.dims<D, N>>
!MN = tensor<4x8xf32, #compound.dims<M, N>>
!ND = tensor<8x6xf32, #compound.dims<N, D>>
func.func @block(%x: !MD, %g: !D, %w: !DN, %v: !ND) -> (!MD, !MN, !MN) {
  %h = compound.map mult %x, %g : !MD, !D -> !MD
  %c = compound.contract %h, %w : !MD, !DN -> !MN
  %d = compound.contract %c, %v : !MN, !ND -> !MD
  %e = compound.map add %d, %h : !MD, !MD -> !MD
  %f = compound.contract %e, %w : !MD, !DN -> !MN
  func.return %e, %c, %f : !MD, !MN, !MN
}

// CHECK:      func.func @block
// CHECK-NEXT:   %x_1 = compound.rename %x split "D" : tensor<4x6xf32, #compound.dims<M, D>> -> tensor<4x2x3xf32, #compound.dims<M, D_part, D_in>>
// CHECK-NEXT:   %g_1 = compound.rename %g split "D"
// CHECK-NEXT:   %w_1 = compound.rename %w split "D"
// CHECK-NEXT:   %h = compound.map mult %x_1, %g_1 : {{.*}} -> tensor<4x2x3xf32, #compound.dims<M, D_part, D_in>>
// CHECK-NEXT:   %h_1 = compound.map mult %x, %g : {{.*}} -> tensor<4x6xf32, #compound.dims<M, D>>
// CHECK-NEXT:   %c = compound.contract %h, %w_1 : {{.*}} -> tensor<2x4x8xf32, #compound.dims<D_part, M, N>>
// CHECK-NEXT:   %c_1 = compound.rename %c : {{.*}} -> tensor<2x4x8xf32, #compound.dims<D_parts, M, N>>
// CHECK-NEXT:   %c_2 = compound.reduce add %c_1 : {{.*}} -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:   %d = compound.contract %c_2, %v
// CHECK-NEXT:   %e = compound.map add %d, %h_1
// CHECK-NEXT:   %f = compound.contract %e, %w
// CHECK-NEXT:   func.return %e, %c_2, %f

// NAME: split: no product over D is called %y; there are %c, %f
// PARTS: split: D = 6 of @block has no 4 parts of one extent; parts may be 1, 2, 3, 6
