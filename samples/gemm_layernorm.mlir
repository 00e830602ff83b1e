// The rows of a matrix product, each normalized by LayerNorm over N, scaled and shifted.

func.func @gemm_layernorm(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %gamma: tensor<256xf16>, %beta: tensor<256xf16>) -> tensor<128x256xf16> {
  %y = compound.gemm_layernorm %a, %b, %gamma, %beta epsilon 1.000000e-05 : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<256xf16>, tensor<256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
