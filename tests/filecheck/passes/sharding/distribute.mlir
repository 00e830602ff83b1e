// RUN: comet-opt %s -p 'distribute{dim=N axes=cx,kx}' | filecheck %s

collective.mesh @edge {cx = 2, cy = 2, kx = 2} at {cx = "GB", cy = "GB", kx = "OB"}

func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %m = compound.reduce max %c : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map sub %c, %m : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %e = compound.map exp %s : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %l = compound.reduce add %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %p = compound.map div %e, %l : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   collective.mesh @edge {cx = 2, cy = 2, kx = 2} at {cx = "GB", cy = "GB", kx = "OB"}
// CHECK-NEXT:   func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> attributes {collective.on = @edge} {
// CHECK-NEXT:     %c = compound.contract %a, %b {collective.shard = {N = ["cx", "kx"]}} : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %m = compound.reduce max %c {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %s = compound.map sub %c, %m {collective.shard = {N = ["cx", "kx"]}}
// CHECK-NEXT:     %e = compound.map exp %s {collective.shard = {N = ["cx", "kx"]}}
// CHECK-NEXT:     %l = compound.reduce add %e {collective.shard = {N = ["cx", "kx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %p = compound.map div %e, %l {collective.shard = {N = ["cx", "kx"]}}
// CHECK-NEXT:     func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT: }
