// Decoding with a cache of keys and values in shards of S: 4 sequences, 2 key heads for 3 query heads each.

func.func @flash_decode(%q: tensor<4x2x3x32xf16>, %k: tensor<4x2x256x32xf16> {collective.shard = {S = ["rank"]}}, %v: tensor<4x2x256x16xf16> {collective.shard = {S = ["rank"]}}, %lens: tensor<4xi32>) -> tensor<4x2x3x16xf16> {
  %o = compound.flash_decode %q, %k, %v, %lens {collective.shard = {S = ["rank"]}} : (tensor<4x2x3x32xf16>, tensor<4x2x256x32xf16>, tensor<4x2x256x16xf16>, tensor<4xi32>) -> tensor<4x2x3x16xf16>
  func.return %o : tensor<4x2x3x16xf16>
}
