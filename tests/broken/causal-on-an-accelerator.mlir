// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func @main(%q: tensor<1x4x32x16xf16>, %k: tensor<1x4x64x16xf16>, %v: tensor<1x4x64x32xf16>) -> tensor<1x4x32x32xf16> {
  %y = compound.attention %q, %k, %v causal : (tensor<1x4x32x16xf16>, tensor<1x4x64x16xf16>, tensor<1x4x64x32xf16>) -> tensor<1x4x32x32xf16>
  func.return %y : tensor<1x4x32x32xf16>
}
