// RUN: comet-opt %s -p outline-kernels | filecheck %s --check-prefix=OUTLINED
// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s --check-prefix=LOWERED

// A kernel that reads one tensor under two names takes it once and views it itself.
func.func @f(%x: tensor<4x8xf32, #compound.dims<M, K @HBM>>) -> tensor<4x4xf32, #compound.dims<M, N @HBM>> {
  %y = compound.rename %x : tensor<4x8xf32, #compound.dims<M, K @HBM>> -> tensor<4x8xf32, #compound.dims<N, K @HBM>>
  %c = schedule.spatial on grid [g0: M = 2] ins(%x, %y : tensor<4x8xf32, #compound.dims<M, K @HBM>>, tensor<4x8xf32, #compound.dims<N, K @HBM>>) outs(tensor<4x4xf32, #compound.dims<M, N @HBM>>) {
  ^bb0(%x1: tensor<2x8xf32, #compound.dims<M, K @SMEM>>, %y1: tensor<4x8xf32, #compound.dims<N, K @SMEM>>):
    %c1 = compound.contract %x1, %y1 : tensor<2x8xf32, #compound.dims<M, K @SMEM>>, tensor<4x8xf32, #compound.dims<N, K @SMEM>> -> tensor<2x4xf32, #compound.dims<M, N @REG>>
    schedule.yield %c1 : tensor<2x4xf32, #compound.dims<M, N @REG>>
  }
  func.return %c : tensor<4x4xf32, #compound.dims<M, N @HBM>>
}

// OUTLINED:      func.func @f
// OUTLINED-NEXT:   %c = dataflow.program ins(%x : tensor<4x8xf32, #compound.dims<M, K @HBM>>) {
// OUTLINED:          dataflow.kernel @f_kernel ins(%x_1 : tensor<4x8xf32, #compound.dims<M, K @HBM>>)
// OUTLINED-NEXT:     ^bb0(%x_2: tensor<4x8xf32, #compound.dims<M, K @HBM>>):
// OUTLINED-NEXT:       %y = compound.rename %x_2 : tensor<4x8xf32, #compound.dims<M, K @HBM>> -> tensor<4x8xf32, #compound.dims<N, K @HBM>>
// OUTLINED-NEXT:       %c_3 = schedule.spatial on grid [g0: M = 2] ins(%x_2, %y :

// LOWERED:     tl.kernel @f_kernel
// LOWERED-SAME: %x_ptr
// LOWERED-NOT: %y_ptr
// LOWERED:     tl.dot
