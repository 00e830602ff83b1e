// A gate, the sigmoid of a product, on another value: an op of a plug-in.
// y = g / (1 + exp(-a b))
func.func @gemm_sigmoid_gate(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>,
                             %g: tensor<128x256xf16>) -> tensor<128x256xf16> {
  %y = sample.gemm_sigmoid_gate %a, %b, %g
    : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf16>) -> tensor<128x256xf16>
  func.return %y : tensor<128x256xf16>
}
