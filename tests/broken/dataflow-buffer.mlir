// RUN:

func.func @main(%x: tensor<4xf32>) {
  %r = dataflow.program ins(%x : tensor<4xf32>) {
  ^bb0(%x1: tensor<4xf32>):
    %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%x1 : tensor<4xf32>) {
    ^bb0(%x2: tensor<4xf32>):
      dataflow.yield %x2 : tensor<4xf32>
    } -> tensor<4xf32>
    dataflow.yield %y : tensor<4xf32>
  } -> tensor<4xf32>
  func.return
}
