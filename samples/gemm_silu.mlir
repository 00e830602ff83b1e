// The elements of a matrix product, each through SiLU.

func.func @gemm_silu(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>) -> tensor<128x256xf16> {
  %y = compound.gemm_silu %a, %b : (tensor<128x64xf16>, tensor<64x256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
