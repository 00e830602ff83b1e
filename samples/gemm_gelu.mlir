// The elements of a matrix product, each through GELU.

func.func @gemm_gelu(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>) -> tensor<128x256xf16> {
  %y = compound.gemm_gelu %a, %b : (tensor<128x64xf16>, tensor<64x256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
