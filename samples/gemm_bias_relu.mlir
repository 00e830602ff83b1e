// A linear layer: a matrix product, a bias for each column, and what is above zero.

func.func @gemm_bias_relu(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %bias: tensor<256xf16>) -> tensor<128x256xf16> {
  %y = compound.gemm_bias_relu %a, %b, %bias : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
