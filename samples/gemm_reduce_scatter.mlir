// A product whose K is sharded over the ranks, of which each keeps a shard of the rows: a reduce-scatter.

func.func @gemm_reduce_scatter(%a: tensor<64x128xf16> {collective.shard = {K = ["rank"]}}, %b: tensor<128x96xf16> {collective.shard = {K = ["rank"]}}) -> (tensor<64x96xf16> {collective.shard = {M = ["rank"]}}) {
  %c = compound.gemm %a, %b {collective.shard = {K = ["rank"]}} : (tensor<64x128xf16>, tensor<128x96xf16>) -> tensor<64x96xf16>
  func.return %c : tensor<64x96xf16>
}
