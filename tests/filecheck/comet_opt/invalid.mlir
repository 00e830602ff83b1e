// RUN: not comet-opt %s 2>&1 | filecheck %s

// The error is one line and nothing else: no traceback, no module.

func.func @wrong(%x: tensor<8xf32>) -> tensor<4xf32> {
  func.return %x : tensor<8xf32>
}

// CHECK: {{.*}}invalid.mlir:6:3: error: Expected arguments to have the same types as the function output types: expected [tensor<4xf32>], got [tensor<8xf32>]
// CHECK-NOT: {{.+}}
