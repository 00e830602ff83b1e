// Tokens meet the weights of 8 experts: ranks hold slots of all experts, and are sent those of their own.

func.func @expert_gemm(%x: tensor<8x32x64xf16> {collective.shard = {T = ["rank"]}}, %w: tensor<8x64x48xf16> {collective.shard = {E = ["rank"]}}) -> (tensor<8x32x48xf16> {collective.shard = {E = ["rank"]}}) {
  %y = compound.expert_gemm %x, %w {collective.shard = {E = ["rank"]}} : (tensor<8x32x64xf16>, tensor<8x64x48xf16>) -> tensor<8x32x48xf16>
  func.return %y : tensor<8x32x48xf16>
}
