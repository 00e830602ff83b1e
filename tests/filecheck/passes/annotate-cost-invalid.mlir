// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},annotate-cost' | filecheck %s

// There is no tree to price.

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>> {
  %y = compound.map exp %x : tensor<4x32xf16, #compound.dims<M, N>> -> tensor<4x32xf16, #compound.dims<M, N>>
  func.return %y : tensor<4x32xf16, #compound.dims<M, N>>
}

// CHECK: annotate-cost: @f is at the elementary level and this pass takes the schedule or dataflow level; run fuse first
