// RUN: comet-opt %s -p lower-to-triton --split-input-file --verify-diagnostics | filecheck %s

// CHECK: lower-to-triton: @f is not one dataflow.program; run outline-kernels first
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  func.return %x : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: kernel @k is not one node on the launch grid
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = dataflow.program ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<M @HBM>>):
    %buffer = dataflow.buffer : tensor<6xf32, #compound.dims<M @HBM>>
    %y1 = dataflow.kernel @k ins(%x1 : tensor<6xf32, #compound.dims<M @HBM>>) outs(%buffer : tensor<6xf32, #compound.dims<M @HBM>>) {
    ^bb1(%x2: tensor<6xf32, #compound.dims<M @HBM>>):
      %y2 = compound.map exp %x2 : tensor<6xf32, #compound.dims<M @HBM>> -> tensor<6xf32, #compound.dims<M @HBM>>
      dataflow.yield %y2 : tensor<6xf32, #compound.dims<M @HBM>>
    } -> tensor<6xf32, #compound.dims<M @HBM>>
    dataflow.yield %y1 : tensor<6xf32, #compound.dims<M @HBM>>
  } -> tensor<6xf32, #compound.dims<M @HBM>>
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}
