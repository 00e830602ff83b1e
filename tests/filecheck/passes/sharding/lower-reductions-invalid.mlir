// RUN: comet-opt %s --split-input-file --verify-diagnostics -p lower-reductions | filecheck %s

func.func @f(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>) -> tensor<4x2xf16> {
  %c = compound.gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  func.return %c : tensor<4x2xf16>
}

// CHECK: lower-reductions: @f is at the graph level and this pass takes the elementary or spmd level; run decompose first
