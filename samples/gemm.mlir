// The product of two matrices.

func.func @gemm(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>) -> tensor<128x256xf16> {
  %c = compound.gemm %a, %b : (tensor<128x64xf16>, tensor<64x256xf16>) -> tensor<128x256xf16>
  func.return %c : tensor<128x256xf16>
}
