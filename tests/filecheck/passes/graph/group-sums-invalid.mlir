// RUN: comet-opt %s --split-input-file --verify-diagnostics -p group-sums | filecheck %s

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %c = compound.gemm %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %c : tensor<4x2xf32>
}

// CHECK: group-sums: @f is at the graph level and this pass takes the elementary or spmd level; run decompose first
