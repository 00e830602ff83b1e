// The rows of a matrix product, each normalized by RMSNorm over N and scaled.

func.func @gemm_rmsnorm(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %gamma: tensor<256xf16>) -> tensor<128x256xf16> {
  %y = compound.gemm_rmsnorm %a, %b, %gamma epsilon 1.000000e-05 : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
