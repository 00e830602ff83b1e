// RUN: comet-opt %s -p outline-kernels --split-input-file --verify-diagnostics | filecheck %s

// CHECK: outline-kernels: @f is at the elementary level and this pass takes the schedule level; run fuse first
func.func @f(%x: tensor<6xf32, #compound.dims<M>>) -> tensor<6xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<6xf32, #compound.dims<M>> -> tensor<6xf32, #compound.dims<M>>
  func.return %y : tensor<6xf32, #compound.dims<M>>
}

// -----

// CHECK: outline-kernels: @f has no node on the launch grid; run fuse for a GPU first
func.func @f(%x: tensor<6xf32, #compound.dims<M>>) -> tensor<6xf32, #compound.dims<M>> {
  func.return %x : tensor<6xf32, #compound.dims<M>>
}
