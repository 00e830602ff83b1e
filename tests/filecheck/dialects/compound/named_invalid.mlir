// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<7x2xf16>)
// CHECK: 'compound.gemm_softmax' op operand 1 has extent 7 for dimension K, an earlier operand has 8
%p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<7x2xf16>) -> tensor<4x2xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>)
// CHECK: 'compound.gemm_softmax' op result is M x N = 4x2, got tensor<4x3xf16>
%p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x3xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf32>)
// CHECK: 'compound.gemm_softmax' op operands share one element type
%p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<8x2xf32>) -> tensor<4x2xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<8xf16>)
// CHECK: 'compound.gemm_softmax' op expects K x N, got tensor<8xf16>
%p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<8xf16>) -> tensor<4x2xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<?x8xf16>, tensor<8x2xf16>)
// CHECK: 'compound.gemm_softmax' op extents are static and positive, got tensor<?x8xf16>
%p = compound.gemm_softmax %a, %b : (tensor<?x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xi16>, tensor<8x2xi16>)
// CHECK: expected a tensor of floats, or of i32 for counts
%p = compound.gemm_softmax %a, %b : (tensor<4x8xi16>, tensor<8x2xi16>) -> tensor<4x2xi16>

// -----

%a, %b, %v = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>)
// CHECK: 'compound.gemm_layernorm' op epsilon is positive
%p = compound.gemm_layernorm %a, %b, %v, %v epsilon 0.0 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>

// -----

%a, %b, %v = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>, tensor<3xf16>)
// CHECK: 'compound.gemm_layernorm' op operand 2 has extent 3 for dimension N, an earlier operand has 2
%p = compound.gemm_layernorm %a, %b, %v, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<3xf16>, tensor<3xf16>) -> tensor<4x2xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>)
// CHECK: 'compound.gemm_softmax' op takes 2 operands, got 3
%p = compound.gemm_softmax %a, %b, %b : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>

// -----

%a, %b, %v = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>)
// CHECK: 'compound.gemm_rmsnorm' op epsilon is positive
%p = compound.gemm_rmsnorm %a, %b, %v epsilon -1.0 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>

// -----

%q, %k = "test.op"() : () -> (tensor<1x2x5x4xf16>, tensor<1x2x3x4xf16>)
// CHECK: 'compound.attention' op is causal with 5 queries and 3 keys, so that some queries see nothing; give it at least as many keys as queries
%o = compound.attention %q, %k, %k causal : (tensor<1x2x5x4xf16>, tensor<1x2x3x4xf16>, tensor<1x2x3x4xf16>) -> tensor<1x2x5x4xf16>

// -----

%q, %k = "test.op"() : () -> (tensor<1x6x3x4xf16>, tensor<1x4x5x4xf16>)
// CHECK: 'compound.attention' op has 6 query heads and 4 key heads; give each key head as many query heads
%o = compound.attention %q, %k, %k : (tensor<1x6x3x4xf16>, tensor<1x4x5x4xf16>, tensor<1x4x5x4xf16>) -> tensor<1x6x3x4xf16>

// -----

%q, %k = "test.op"() : () -> (tensor<1x6x2x3x4xf16>, tensor<1x4x5x4xf16>)
// CHECK: 'compound.attention' op operand 1 has extent 4 for dimension H, an earlier operand has 6
%o = compound.attention %q, %k, %k : (tensor<1x6x2x3x4xf16>, tensor<1x4x5x4xf16>, tensor<1x4x5x4xf16>) -> tensor<1x6x2x3x4xf16>

// -----

%q, %k = "test.op"() : () -> (tensor<1x8x3x4xf16>, tensor<1x4x5x4xf16>)
// CHECK: 'compound.attention' op result is B x HG x M x E = 1x8x3x4, got tensor<1x4x3x4xf16>
%o = compound.attention %q, %k, %k : (tensor<1x8x3x4xf16>, tensor<1x4x5x4xf16>, tensor<1x4x5x4xf16>) -> tensor<1x4x3x4xf16>

// -----

// CHECK: 'compound.index' op result has one dimension, got tensor<4x2xf32, #compound.dims<M, N>>
%n = compound.index : tensor<4x2xf32, #compound.dims<M, N>>

// -----

%x, %w = "test.op"() : () -> (tensor<2x3x4xf16>, tensor<3x4x5xf16>)
// CHECK: 'compound.expert_gemm' op operand 1 has extent 3 for dimension E, an earlier operand has 2
%y = compound.expert_gemm %x, %w : (tensor<2x3x4xf16>, tensor<3x4x5xf16>) -> tensor<2x3x5xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xf16>, tensor<8x2xf16>)
// CHECK: 'compound.ag_gemm' op result is M x N = 4x2, got tensor<2x4xf16>
%c = compound.ag_gemm %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<2x4xf16>

// -----

%q, %k, %v, %n = "test.op"() : () -> (tensor<3x2x1x4xf16>, tensor<3x2x5x4xf16>, tensor<3x2x5x4xf16>, tensor<3xf16>)
// CHECK: 'compound.flash_decode' op operand 3 is a tensor of i32, got tensor<3xf16>
%o = compound.flash_decode %q, %k, %v, %n : (tensor<3x2x1x4xf16>, tensor<3x2x5x4xf16>, tensor<3x2x5x4xf16>, tensor<3xf16>) -> tensor<3x2x1x4xf16>

// -----

%q, %k, %v, %n = "test.op"() : () -> (tensor<3x2x1x4xf16>, tensor<3x2x5x4xf16>, tensor<3x2x5x4xf16>, tensor<4xi32>)
// CHECK: 'compound.flash_decode' op operand 3 has extent 4 for dimension B, an earlier operand has 3
%o = compound.flash_decode %q, %k, %v, %n : (tensor<3x2x1x4xf16>, tensor<3x2x5x4xf16>, tensor<3x2x5x4xf16>, tensor<4xi32>) -> tensor<3x2x1x4xf16>

// -----

%a, %b = "test.op"() : () -> (tensor<4x8xi32>, tensor<8x2xi32>)
// CHECK: 'compound.gemm' op operand 0 is a tensor of floats, got tensor<4x8xi32>
%c = compound.gemm %a, %b : (tensor<4x8xi32>, tensor<8x2xi32>) -> tensor<4x2xi32>
