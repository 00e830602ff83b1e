// RUN:

func.func @main(%q: tensor<1x2x5x4xf16>, %k: tensor<1x2x3x4xf16>) {
  %o = compound.attention %q, %k, %k causal : (tensor<1x2x5x4xf16>, tensor<1x2x3x4xf16>, tensor<1x2x3x4xf16>) -> tensor<1x2x5x4xf16>
  func.return
}
