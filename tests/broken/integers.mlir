// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func @main(%a: tensor<8x4xi8>, %b: tensor<4x64xi8>) -> tensor<8x64xi8> {
  %y = compound.gemm_softmax %a, %b : (tensor<8x4xi8>, tensor<4x64xi8>) -> tensor<8x64xi8>
  func.return %y : tensor<8x64xi8>
}
