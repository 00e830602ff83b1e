// A product whose K is sharded over the ranks: each makes terms of all of it, and an all-reduce adds them up.

func.func @gemm_all_reduce(%a: tensor<64x128xf16> {collective.shard = {K = ["rank"]}}, %b: tensor<128x96xf16> {collective.shard = {K = ["rank"]}}) -> tensor<64x96xf16> {
  %c = compound.gemm %a, %b {collective.shard = {K = ["rank"]}} : (tensor<64x128xf16>, tensor<128x96xf16>) -> tensor<64x96xf16>
  func.return %c : tensor<64x96xf16>
}
