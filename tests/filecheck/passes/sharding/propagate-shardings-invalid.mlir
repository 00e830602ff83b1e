// RUN: comet-opt %s --split-input-file --verify-diagnostics -p propagate-shardings | filecheck %s

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> (tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {K = ["rank"]}}) {
  func.return %x : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: propagate-shardings: result 0 of @f is sharded in K, which it does not have; its dimensions are M, N

// -----

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> (tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}}) {
  func.return %x : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK: propagate-shardings: the module has no mesh; run attach-hardware, or write collective.mesh @NAME {axis = extent}
