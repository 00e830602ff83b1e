// Two matrix products in a row.

func.func @gemm_gemm(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %c: tensor<256x32xf16>) -> tensor<128x32xf16> {
  %y = compound.gemm_gemm %a, %b, %c : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<256x32xf16>) -> tensor<128x32xf16>
  func.return %y : tensor<128x32xf16>
}
