// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'distribute{dim=N axes=rank}' | filecheck %s

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: the module has no mesh; run attach-hardware, or write collective.mesh @NAME {axis = extent}

// -----

collective.mesh @one {rank = 2}
collective.mesh @two {rank = 4}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: the module has the meshes one, two; choose one with mesh=NAME

// -----

collective.mesh @edge {cx = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: mesh @edge has no axis 'rank'; its axes are cx

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, K>>) -> tensor<4x8xf32, #compound.dims<M, K>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x8xf32, #compound.dims<M, K>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, K>>
}

// CHECK: distribute: no op of @f has the dimension N; dimensions of the function are K, M

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {M = ["rank"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: axis rank of 'compound.map' splits M already; an axis splits one dimension, choose another for N

// -----

collective.mesh @gpus {rank = 2, node = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {N = ["node"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: 'compound.map' is already sharded in N over node

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  func.return %x : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: distribute: @f computes nothing along a dimension, so that there is nothing to spread; leave distribute out, or ask for one rank
