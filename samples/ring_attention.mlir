// Attention whose sequence is sharded over the ranks: each keeps its queries, and sees the keys and values of all.

func.func @ring_attention(%q: tensor<1x4x64x32xf16> {collective.shard = {M = ["rank"]}}, %k: tensor<1x4x128x32xf16> {collective.shard = {N = ["rank"]}}, %v: tensor<1x4x128x16xf16> {collective.shard = {N = ["rank"]}}) -> (tensor<1x4x64x16xf16> {collective.shard = {M = ["rank"]}}) {
  %o = compound.attention %q, %k, %v {collective.shard = {M = ["rank"]}} : (tensor<1x4x64x32xf16>, tensor<1x4x128x32xf16>, tensor<1x4x128x16xf16>) -> tensor<1x4x64x16xf16>
  func.return %o : tensor<1x4x64x16xf16>
}
