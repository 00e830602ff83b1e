// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP
// The named compound ops of a matrix product and what follows it.

func.func @named(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %v: tensor<2xf16>) {
  %r = compound.gemm_rmsnorm %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  %q = compound.gemm_rmsnorm %a, %b, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  func.return
}

// CHECK:      func.func @named
// CHECK-NEXT:   %r = compound.gemm_rmsnorm %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %q = compound.gemm_rmsnorm %a, %b, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>

// CHECK-GENERIC: %r = "compound.gemm_rmsnorm"(%a, %b, %v) <{epsilon = 1.000000e-05 : f64}> : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
