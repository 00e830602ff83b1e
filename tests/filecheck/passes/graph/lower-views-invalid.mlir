// RUN: comet-opt %s --split-input-file --verify-diagnostics -p lower-views | filecheck %s

!X = tensor<4x6xf32, #compound.dims<M, N>>
collective.mesh @gpus {rank = 2}
func.func @masked(%x: !X) -> !X {
  %r = collective.spmd on @gpus ins(%x : !X) sharded [{N = ["rank"]}] outs(!X) sharded [{N = ["rank"]}] {
  ^bb0(%local: tensor<4x3xf32, #compound.dims<M, N>>):
    %y = compound.pad %local <0.0 from N = 5> : tensor<4x3xf32, #compound.dims<M, N>> -> tensor<4x3xf32, #compound.dims<M, N>>
    collective.yield %y : tensor<4x3xf32, #compound.dims<M, N>>
  }
  func.return %r : !X
}

// CHECK: lower-views: @masked has 'compound.pad' of N in a region of ranks that have shards of it, and its end is that of another rank; pad before the region is made
