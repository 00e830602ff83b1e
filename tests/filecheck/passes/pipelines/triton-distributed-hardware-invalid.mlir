// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},triton-distributed' | filecheck %s

// CHECK: triton-distributed: hardware @edge is no GPU; run comet-accelerator, or attach a hardware file with a `comet: gpu` section
func.func @named(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}
