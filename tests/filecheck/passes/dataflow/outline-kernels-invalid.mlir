// RUN: comet-opt %s -p outline-kernels --split-input-file --verify-diagnostics | filecheck %s

// CHECK: outline-kernels: @f is at the elementary level and this pass takes the schedule level; run fuse first
func.func @f(%x: tensor<6xf32, #compound.dims<M>>) -> tensor<6xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<6xf32, #compound.dims<M>> -> tensor<6xf32, #compound.dims<M>>
  func.return %y : tensor<6xf32, #compound.dims<M>>
}

// -----

func.func @returned(%x: tensor<4xf32, #compound.dims<M @HBM>>) -> (tensor<4xf32, #compound.dims<M @HBM>>, tensor<4xf32, #compound.dims<N @HBM>>) {
  %e = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<4xf32, #compound.dims<M @HBM>>) outs(tensor<4xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<2xf32, #compound.dims<M @REG>>):
    %e1 = compound.map exp %x1 : tensor<2xf32, #compound.dims<M @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
    schedule.yield %e1 : tensor<2xf32, #compound.dims<M @REG>>
  }
  %y = compound.index : tensor<4xf32, #compound.dims<N @HBM>>
  func.return %e, %y : tensor<4xf32, #compound.dims<M @HBM>>, tensor<4xf32, #compound.dims<N @HBM>>
}

// CHECK: outline-kernels: compound.index in @returned is outside the nodes on the launch grid; run fuse for a GPU first
