// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/mi300x8.yaml"},triton-distributed{strategy=full copies=descriptors}' | filecheck %s

func.func @gemm(%a: tensor<40x40xf16>, %b: tensor<40x20xf16>) -> tensor<40x20xf16> {
  %c = compound.gemm %a, %b : (tensor<40x40xf16>, tensor<40x20xf16>) -> tensor<40x20xf16>
  func.return %c : tensor<40x20xf16>
}

// CHECK: use-descriptors: @mi300x8 has no descriptors; use copies=pointers, or say descriptor_bytes in its hardware file
