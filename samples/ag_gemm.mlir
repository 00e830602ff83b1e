// A product on every rank, whose left matrix is held in shards of its columns: it has to be gathered.

func.func @ag_gemm(%a: tensor<64x128xf16> {collective.shard = {K = ["rank"]}}, %b: tensor<128x96xf16>) -> tensor<64x96xf16> {
  %c = compound.ag_gemm %a, %b : (tensor<64x128xf16>, tensor<128x96xf16>) -> tensor<64x96xf16>
  func.return %c : tensor<64x96xf16>
}
