// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

func.func @identity(%x: tensor<8xf32>) -> tensor<8xf32> {
  func.return %x : tensor<8xf32>
}

// CHECK:      func.func @identity(%x: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:   func.return %x : tensor<8xf32>

// CHECK-GENERIC: "func.func"() <{{.*}}sym_name = "identity"
