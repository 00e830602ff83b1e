// RUN: comet-opt %s -p insert-collectives | filecheck %s

collective.mesh @edge {cx = 2, cy = 2, kx = 2} at {cx = "GB", cy = "GB", kx = "OB"}

func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> attributes {collective.on = @edge} {
  %c = compound.contract %a, %b {collective.shard = {N = ["cx", "kx"]}} : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %m = compound.reduce max %c {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map sub %c, %m {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %e = compound.map exp %s {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %l = compound.reduce add %e {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %p = compound.map div %e, %l {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   collective.mesh @edge {cx = 2, cy = 2, kx = 2} at {cx = "GB", cy = "GB", kx = "OB"}
// CHECK-NEXT:   func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
// CHECK-NEXT:     %p = collective.spmd on @edge ins(%a, %b : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>>) sharded [{}, {N = ["cx", "kx"]}] outs(tensor<4x8xf32, #compound.dims<M, N>>) sharded [{N = ["cx", "kx"]}] {
// CHECK-NEXT:     ^bb0(%a_1: tensor<4x2xf32, #compound.dims<M, K>>, %b_1: tensor<2x2xf32, #compound.dims<K, N>>):
// CHECK-NEXT:       %c = compound.contract %a_1, %b_1 : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x2xf32, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:       %m = compound.reduce max %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %m_1 = collective.all_reduce max %m on @edge ["cx", "kx"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %s = compound.map sub %c, %m_1
// CHECK-NEXT:       %e = compound.map exp %s
// CHECK-NEXT:       %l = compound.reduce add %e : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %l_1 = collective.all_reduce add %l on @edge ["cx", "kx"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %p_1 = compound.map div %e, %l_1
// CHECK-NEXT:       collective.yield %p_1 : tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:   }

// Shards of ids choose rows of the whole table, or whole ids rows of shards.

!table = tensor<8x4xf32, #compound.dims<V, D>>
!ids = tensor<6xi32, #compound.dims<T>>
!rows = tensor<6x4xf32, #compound.dims<T, D>>
func.func @gathers(%x: !table, %i: !ids) -> (!rows, !rows) {
  %r = compound.gather %x, %i along "V" : !table, !ids -> !rows
  %e = compound.map exp %r {collective.shard = {T = ["cx"]}} : !rows -> !rows
  %t = compound.map tanh %r {collective.shard = {D = ["cx"]}} : !rows -> !rows
  func.return %e, %t : !rows, !rows
}

// CHECK-LABEL: func.func @gathers
// CHECK:      collective.spmd on @edge ins(%x, %x, %i, %i
// CHECK-SAME: sharded [{}, {D = ["cx"]}, {T = ["cx"]}, {}]
// CHECK-NEXT: ^bb0(%x_1: {{.*}}, %x_2: {{.*}}, %i_1: {{.*}}, %i_2: {{.*}}):
// CHECK-NEXT:   %r = compound.gather %x_1, %i_1 along "V" : tensor<8x4xf32, #compound.dims<V, D>>, tensor<3xi32, #compound.dims<T>>
// CHECK-NEXT:   %e_1 = compound.map exp %r
// CHECK-NEXT:   %r_1 = compound.gather %x_2, %i_2 along "V" : tensor<8x2xf32, #compound.dims<V, D>>, tensor<6xi32, #compound.dims<T>>
// CHECK-NEXT:   %t_1 = compound.map tanh %r_1
