// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=8}' | filecheck %s

func.func @f(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}

// CHECK: triton-distributed: ranks=8 is not supported, kernels are written for one GPU; use ranks=1
