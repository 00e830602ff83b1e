// The rows of a matrix product, each normalized by softmax over N.

func.func @gemm_softmax(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>) -> tensor<128x256xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<128x64xf16>, tensor<64x256xf16>) -> tensor<128x256xf16>
  func.return %p : tensor<128x256xf16>
}
