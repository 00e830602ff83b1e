// A state-space scan of 8 heads over 128 steps, with 16 by 64 numbers of state each.

func.func @ssm_scan(%x: tensor<8x128x64xf16>, %log_a: tensor<8x128xf16>, %b: tensor<8x128x16xf16>, %c: tensor<8x128x16xf16>) -> tensor<8x128x64xf16> {
  %y = compound.ssm_scan %x, %log_a, %b, %c : (tensor<8x128x64xf16>, tensor<8x128xf16>, tensor<8x128x16xf16>, tensor<8x128x16xf16>) -> tensor<8x128x64xf16>
  func.return %y : tensor<8x128x64xf16>
}
