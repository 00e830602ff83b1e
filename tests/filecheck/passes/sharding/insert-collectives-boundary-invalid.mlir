// RUN: comet-opt %s --split-input-file --verify-diagnostics -p insert-collectives | filecheck %s

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {K = ["rank"]}}) -> tensor<4x8xf32, #compound.dims<M, N>> {
  func.return %x : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: argument 0 of @f is sharded in K, which it does not have; its dimensions are M, N

// -----

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> (tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {M = ["cx"]}}) {
  func.return %x : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: insert-collectives: result 0 of @f has a wrong sharding: mesh @gpus has no axis 'cx'; its axes are rank
