// RUN: comet-opt %s -p outline-kernels | filecheck %s

!x = tensor<6x8xf32, #compound.dims<M, N @HBM>>
!m = tensor<6xf32, #compound.dims<M @HBM>>
!xt = tensor<3x8xf32, #compound.dims<M, N @REG>>
!mt = tensor<3xf32, #compound.dims<M @REG>>

// Three kernels: the second reads what the first wrote, the third does as well, but a
// barrier is between already.

func.func @rows(%x: !x) -> (!m, !m) {
  %top = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!m) {
  ^bb0(%x1: !xt):
    %top1 = compound.reduce max %x1 : !xt -> !mt
    schedule.yield %top1 : !mt
  }
  %twice = schedule.spatial on grid [g0: M = 2] ins(%top, %top : !m, !m) outs(!m) {
  ^bb0(%a: !mt, %b: !mt):
    %s = compound.map add %a, %b : !mt, !mt -> !mt
    schedule.yield %s : !mt
  }
  %square = schedule.spatial on grid [g0: M = 2] ins(%top : !m) outs(!m) {
  ^bb0(%a: !mt):
    %s = compound.map mult %a, %a : !mt, !mt -> !mt
    schedule.yield %s : !mt
  }
  func.return %twice, %square : !m, !m
}

// CHECK:       func.func @rows(%x: tensor<6x8xf32, #compound.dims<M, N @HBM>>)
// CHECK-NEXT:    %twice, %square = dataflow.program ins(%x : tensor<6x8xf32, #compound.dims<M, N @HBM>>) {
// CHECK-NEXT:    ^bb{{.}}(%x_1: tensor<6x8xf32, #compound.dims<M, N @HBM>>):
// CHECK-NEXT:      %top = dataflow.buffer : tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:      %top_1 = dataflow.kernel @rows_top_kernel ins(%x_1 : tensor<6x8xf32, #compound.dims<M, N @HBM>>) outs(%top : tensor<6xf32, #compound.dims<M @HBM>>) {
// CHECK-NEXT:      ^bb{{.}}(%x_2: tensor<6x8xf32, #compound.dims<M, N @HBM>>):
// CHECK-NEXT:        %top_2 = schedule.spatial on grid [g0: M = 2] ins(%x_2 : tensor<6x8xf32, #compound.dims<M, N @HBM>>) outs(tensor<6xf32, #compound.dims<M @HBM>>) {
// CHECK:           dataflow.yield %top_2 : tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:      } -> tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:      %twice_1 = dataflow.buffer : tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:      dataflow.barrier
// CHECK-NEXT:      %twice_2 = dataflow.kernel @rows_twice_kernel ins(%top_1 : tensor<6xf32, #compound.dims<M @HBM>>) outs(%twice_1 : tensor<6xf32, #compound.dims<M @HBM>>) {
// CHECK-NOT:       dataflow.barrier
// CHECK:           dataflow.kernel @rows_square_kernel ins(%top_1 : tensor<6xf32, #compound.dims<M @HBM>>)
// CHECK:           dataflow.yield %twice_2, %square_2 : tensor<6xf32, #compound.dims<M @HBM>>, tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:    } -> tensor<6xf32, #compound.dims<M @HBM>>, tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:    func.return %twice, %square

// Nothing to launch: the program returns its argument.

func.func @given(%x: !x) -> !x {
  func.return %x : !x
}

// CHECK:      func.func @given
// CHECK-NEXT:   %x_1 = dataflow.program ins(%x : tensor<6x8xf32, #compound.dims<M, N @HBM>>) {
// CHECK-NEXT:   ^bb{{.}}(%x_2: tensor<6x8xf32, #compound.dims<M, N @HBM>>):
// CHECK-NEXT:     dataflow.yield %x_2 : tensor<6x8xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   } -> tensor<6x8xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   func.return %x_1
