// Causal attention of 8 query heads in one dimension, of which 4 share each of 2 key heads: 128 queries, 256 keys of size 64 and as many values of size 32.

func.func @attention_flat(%q: tensor<1x8x128x64xf16>, %k: tensor<1x2x256x64xf16>, %v: tensor<1x2x256x32xf16>) -> tensor<1x8x128x32xf16> {
  %o = compound.attention %q, %k, %v causal : (tensor<1x8x128x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x32xf16>) -> tensor<1x8x128x32xf16>
  func.return %o : tensor<1x8x128x32xf16>
}
