// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP
// The named compound ops beside gemm_softmax and gemm_layernorm, positions, and views.

func.func @named(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<2x6xf16>, %v: tensor<2xf16>,
    %q: tensor<1x2x3x4xf16>, %k: tensor<1x2x5x4xf16>, %w: tensor<1x2x5x6xf16>,
    %x: tensor<2x3x4xf16>, %d: tensor<2x3xf16>, %s: tensor<2x3x5xf16>, %e: tensor<2x4x5xf16>, %n: tensor<1xi32>,
    %g: tensor<1x2x7x3x4xf16>, %f: tensor<1x14x3x4xf16>) {
  %r0 = compound.gemm_rmsnorm %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  %r1 = compound.gemm_rmsnorm %a, %b, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  %r2 = compound.gemm_gelu %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  %r3 = compound.gemm_silu %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  %r4 = compound.gemm_gemm %a, %b, %c : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
  %r5 = compound.gated_mlp %a, %b, %b, %c : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
  %r6 = compound.attention %q, %k, %w : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
  %r7 = compound.attention %q, %k, %w causal : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
  %r8 = compound.index : tensor<8xf32, #compound.dims<N>>
  %r9 = compound.ssm_scan %x, %d, %s, %s : (tensor<2x3x4xf16>, tensor<2x3xf16>, tensor<2x3x5xf16>, tensor<2x3x5xf16>) -> tensor<2x3x4xf16>
  %r10 = compound.gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  %r11 = compound.ag_gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  %r12 = compound.expert_gemm %x, %e : (tensor<2x3x4xf16>, tensor<2x4x5xf16>) -> tensor<2x3x5xf16>
  %r13 = compound.flash_decode %q, %k, %w, %n : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>, tensor<1xi32>) -> tensor<1x2x3x6xf16>
  %r14 = compound.index of 30 over ["x", "y"] : tensor<8xf32, #compound.dims<N>>
  %r15 = compound.rename %r14 split "N" : tensor<8xf32, #compound.dims<N>> -> tensor<2x4xf32, #compound.dims<P, Q>>
  %r16 = compound.gemm_bias_relu %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  %r17 = compound.attention %g, %k, %w causal : (tensor<1x2x7x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x7x3x6xf16>
  %r18 = compound.attention %f, %k, %w : (tensor<1x14x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x14x3x6xf16>
  func.return
}

// CHECK:      func.func @named
// CHECK-NEXT:   %r0 = compound.gemm_rmsnorm %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r1 = compound.gemm_rmsnorm %a, %b, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r2 = compound.gemm_gelu %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r3 = compound.gemm_silu %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r4 = compound.gemm_gemm %a, %b, %c : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
// CHECK-NEXT:   %r5 = compound.gated_mlp %a, %b, %b, %c : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
// CHECK-NEXT:   %r6 = compound.attention %q, %k, %w : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
// CHECK-NEXT:   %r7 = compound.attention %q, %k, %w causal : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
// CHECK-NEXT:   %r8 = compound.index : tensor<8xf32, #compound.dims<N>>
// CHECK-NEXT:   %r9 = compound.ssm_scan %x, %d, %s, %s : (tensor<2x3x4xf16>, tensor<2x3xf16>, tensor<2x3x5xf16>, tensor<2x3x5xf16>) -> tensor<2x3x4xf16>
// CHECK-NEXT:   %r10 = compound.gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r11 = compound.ag_gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r12 = compound.expert_gemm %x, %e : (tensor<2x3x4xf16>, tensor<2x4x5xf16>) -> tensor<2x3x5xf16>
// CHECK-NEXT:   %r13 = compound.flash_decode %q, %k, %w, %n : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>, tensor<1xi32>) -> tensor<1x2x3x6xf16>
// CHECK-NEXT:   %r14 = compound.index of 30 over ["x", "y"] : tensor<8xf32, #compound.dims<N>>
// CHECK-NEXT:   %r15 = compound.rename %r14 split "N" : tensor<8xf32, #compound.dims<N>> -> tensor<2x4xf32, #compound.dims<P, Q>>
// CHECK-NEXT:   %r16 = compound.gemm_bias_relu %a, %b, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:   %r17 = compound.attention %g, %k, %w causal : (tensor<1x2x7x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x7x3x6xf16>
// CHECK-NEXT:   %r18 = compound.attention %f, %k, %w : (tensor<1x14x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x14x3x6xf16>

// CHECK-GENERIC:      "func.func"
// CHECK-GENERIC-NEXT: ^{{.*}}
// CHECK-GENERIC-NEXT: %r0 = "compound.gemm_rmsnorm"(%a, %b, %v) <{epsilon = 1.000000e-05 : f64}> : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r1 = "compound.gemm_rmsnorm"(%a, %b, %v) <{epsilon = 1.000000e-03 : f64}> : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r2 = "compound.gemm_gelu"(%a, %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r3 = "compound.gemm_silu"(%a, %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r4 = "compound.gemm_gemm"(%a, %b, %c) : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
// CHECK-GENERIC-NEXT: %r5 = "compound.gated_mlp"(%a, %b, %b, %c) : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<8x2xf16>, tensor<2x6xf16>) -> tensor<4x6xf16>
// CHECK-GENERIC-NEXT: %r6 = "compound.attention"(%q, %k, %w) : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
// CHECK-GENERIC-NEXT: %r7 = "compound.attention"(%q, %k, %w) <{causal}> : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
// CHECK-GENERIC-NEXT: %r8 = "compound.index"() : () -> tensor<8xf32, #compound.dims<N>>
// CHECK-GENERIC-NEXT: %r9 = "compound.ssm_scan"(%x, %d, %s, %s) : (tensor<2x3x4xf16>, tensor<2x3xf16>, tensor<2x3x5xf16>, tensor<2x3x5xf16>) -> tensor<2x3x4xf16>
// CHECK-GENERIC-NEXT: %r10 = "compound.gemm"(%a, %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r11 = "compound.ag_gemm"(%a, %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r12 = "compound.expert_gemm"(%x, %e) : (tensor<2x3x4xf16>, tensor<2x4x5xf16>) -> tensor<2x3x5xf16>
// CHECK-GENERIC-NEXT: %r13 = "compound.flash_decode"(%q, %k, %w, %n) : (tensor<1x2x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>, tensor<1xi32>) -> tensor<1x2x3x6xf16>
// CHECK-GENERIC-NEXT: %r14 = "compound.index"() <{whole = 30 : i64, axes = ["x", "y"]}> : () -> tensor<8xf32, #compound.dims<N>>
// CHECK-GENERIC-NEXT: %r15 = "compound.rename"(%r14) <{split = "N"}> : (tensor<8xf32, #compound.dims<N>>) -> tensor<2x4xf32, #compound.dims<P, Q>>
// CHECK-GENERIC-NEXT: %r16 = "compound.gemm_bias_relu"(%a, %b, %v) : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT: %r17 = "compound.attention"(%g, %k, %w) <{causal}> : (tensor<1x2x7x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x7x3x6xf16>
// CHECK-GENERIC-NEXT: %r18 = "compound.attention"(%f, %k, %w) : (tensor<1x14x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x6xf16>) -> tensor<1x14x3x6xf16>
