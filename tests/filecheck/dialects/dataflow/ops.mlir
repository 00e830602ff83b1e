// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

func.func @two_kernels(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK:       %r = dataflow.program ins(%x : tensor<4x8xf32>) {
  // CHECK-GENERIC: %r = "dataflow.program"(%x) ({
  %r = dataflow.program ins(%x : tensor<4x8xf32>) {
  ^bb0(%x1: tensor<4x8xf32>):
    // CHECK:         %scores = dataflow.buffer : tensor<4x8xf32>
    %scores = dataflow.buffer : tensor<4x8xf32>
    %rows = dataflow.buffer : tensor<4xf32>
    // CHECK:         %s = dataflow.kernel @score ins(%x1 : tensor<4x8xf32>) outs(%scores : tensor<4x8xf32>) {
    // CHECK-NEXT:    ^bb{{.}}(%x2: tensor<4x8xf32>):
    // CHECK-NEXT:      dataflow.yield %x2 : tensor<4x8xf32>
    // CHECK-NEXT:    } -> tensor<4x8xf32>
    %s = dataflow.kernel @score ins(%x1 : tensor<4x8xf32>) outs(%scores : tensor<4x8xf32>) {
    ^bb0(%x2: tensor<4x8xf32>):
      dataflow.yield %x2 : tensor<4x8xf32>
    } -> tensor<4x8xf32>
    // CHECK-NEXT:    dataflow.barrier
    dataflow.barrier
    // CHECK-NEXT:    %t = dataflow.kernel @rowmax ins(%s : tensor<4x8xf32>) outs(%rows : tensor<4xf32>) {
    %t = dataflow.kernel @rowmax ins(%s : tensor<4x8xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%s1: tensor<4x8xf32>):
      %m = "test.op"(%s1) : (tensor<4x8xf32>) -> tensor<4xf32>
      dataflow.yield %m : tensor<4xf32>
    } -> tensor<4xf32>
    // CHECK:         dataflow.yield %t : tensor<4xf32>
    dataflow.yield %t : tensor<4xf32>
  // CHECK-NEXT:    } -> tensor<4xf32>
  } -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
