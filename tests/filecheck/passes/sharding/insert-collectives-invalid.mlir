// RUN: comet-opt %s --split-input-file --verify-diagnostics -p insert-collectives | filecheck %s

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {K = ["rank"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: 'compound.map' is sharded in K, which it does not have; its dimensions are M, N

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {N = ["cx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: 'compound.map' has a wrong sharding: mesh @gpus has no axis 'cx'; its axes are rank

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {M = ["rank"], N = ["rank"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: 'compound.map' has a wrong sharding: axis 'rank' is named twice

// -----

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = {N = ["rank"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: the module has no mesh

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x {collective.shard = "N"} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: 'compound.map' op collective.shard: expected a sharding {N = [..]}, got "N"

// -----

collective.mesh @gpus {rank = 2}

func.func @graph(%a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b {collective.shard = {N = ["rank"]}} : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

// CHECK: insert-collectives: @graph is at the graph level and this pass takes the elementary level; run decompose first

// -----

!V = tensor<8x4xf32, #compound.dims<V, D>>
!T = tensor<5xi32, #compound.dims<T>>
!R = tensor<5x4xf32, #compound.dims<T, D>>

collective.mesh @gpus {rank = 2}

func.func @f(%x: !V {collective.shard = {V = ["rank"]}}, %i: !T) -> !R {
  %r = compound.gather %x, %i along "V" : !V, !T -> !R
  %e = compound.map exp %r {collective.shard = {T = ["rank"]}} : !R -> !R
  func.return %e : !R
}

// CHECK: insert-collectives: 'compound.gather' gathers along V, which is split over rank, and ids may name any position; shard another dimension of the table, or a dimension of ids
