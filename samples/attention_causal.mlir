// Causal attention of 8 heads, each query sees the keys up to its own: 128 queries, 256 keys of size 64 and as many values of size 32.

func.func @attention_causal(%q: tensor<1x8x128x64xf16>, %k: tensor<1x8x256x64xf16>, %v: tensor<1x8x256x32xf16>) -> tensor<1x8x128x32xf16> {
  %o = compound.attention %q, %k, %v causal : (tensor<1x8x128x64xf16>, tensor<1x8x256x64xf16>, tensor<1x8x256x32xf16>) -> tensor<1x8x128x32xf16>
  func.return %o : tensor<1x8x128x32xf16>
}
