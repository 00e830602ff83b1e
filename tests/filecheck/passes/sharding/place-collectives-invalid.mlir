// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'place-collectives{at=GB kind=reduce_scatter_all_gather}' | filecheck %s

collective.mesh @mesh {rank = 2} at {rank = "HBM"}

func.func @f(%x: tensor<4x16xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = collective.spmd on @mesh ins(%x : tensor<4x16xf32, #compound.dims<M, N>>) sharded [{N = ["rank"]}] outs(tensor<4xf32, #compound.dims<M>>) sharded [{}] {
  ^bb0(%local: tensor<4x8xf32, #compound.dims<M, N>>):
    %part = compound.reduce max %local : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %whole = collective.all_reduce max %part on @mesh ["rank"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    collective.yield %whole : tensor<4xf32, #compound.dims<M>>
  }
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: place-collectives: no axis of mesh @mesh is at level GB; its axes are at HBM

// -----

collective.mesh @mesh {cx = 8} at {cx = "GB"}

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = collective.spmd on @mesh ins(%x : tensor<4x8xf32, #compound.dims<M, N>>) sharded [{N = ["cx"]}] outs(tensor<4xf32, #compound.dims<M>>) sharded [{}] {
  ^bb0(%local: tensor<4x1xf32, #compound.dims<M, N>>):
    %part = compound.reduce max %local : tensor<4x1xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %whole = collective.all_reduce max %part on @mesh ["cx"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    collective.yield %whole : tensor<4xf32, #compound.dims<M>>
  }
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: place-collectives: tensor<4xf32, #compound.dims<M>> has no dimension to scatter over 8 instances; use kind=allreduce
