// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func @main(%a: tensor<8x4xf16>, %b: tensor<4x64xf16>) -> tensor<8x64xf16> {
  %y = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x64xf16>) -> tensor<8x64xf16>
  func.return %y : tensor<8x64xf16>
}

func.func @other(%a: tensor<8x4xf16>, %b: tensor<4x64xf16>) -> tensor<8x64xf16> {
  %y = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x64xf16>) -> tensor<8x64xf16>
  func.return %y : tensor<8x64xf16>
}
