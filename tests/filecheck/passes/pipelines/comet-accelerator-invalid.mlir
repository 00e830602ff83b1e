// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},comet-accelerator' | filecheck %s

// CHECK: comet-accelerator: hardware @h200x1 is a GPU; run triton-distributed, or attach an accelerator's hardware file
func.func @named(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}
