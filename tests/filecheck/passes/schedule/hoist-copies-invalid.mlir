// RUN: comet-opt %s -p hoist-copies --verify-diagnostics | filecheck %s

// CHECK: hoist-copies: @graph is at the elementary level and this pass takes the schedule or dataflow level; run fuse first
func.func @graph(%x: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %y : tensor<4xf32, #compound.dims<M>>
}
