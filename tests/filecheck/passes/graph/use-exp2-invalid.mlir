// RUN: comet-opt %s --split-input-file --verify-diagnostics -p decompose,use-exp2 | filecheck %s
// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},decompose,use-exp2' | filecheck %s --check-prefix=EDGE
// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},use-exp2' | filecheck %s --check-prefix=GPU

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %c = compound.gemm %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %c : tensor<4x2xf32>
}

// CHECK: no hardware
// EDGE: is no GPU
// GPU: use-exp2: @f is at the graph level and this pass takes the elementary or spmd level; run decompose first
