// RUN: comet-opt %s --split-input-file --verify-diagnostics -p decompose | filecheck %s

func.func @copy(%x: tensor<8xf32>) -> tensor<8xf32> {
  func.return %x : tensor<8xf32>
}

// CHECK: decompose: @copy has no op, so there is nothing to compile; copy an argument that it returns with compound.map copy

// -----

func.func @sum(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %y : f32
}

// CHECK: decompose: 'arith.addf' has no decomposition; ops with one are compound.

// -----

func.func @mixed(%x: f32, %a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

// CHECK: decompose: 'func.func' has a value of type f32; the graph level has tensors only

// -----

func.func @named(%x: tensor<8xf32, #compound.dims<N>>, %a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

// CHECK: decompose: tensor<4x2xf16> has no named dimensions, and other values of @named have; write #compound.dims<..> into all types of a function, or into none

// -----

func.func @beside(%x: tensor<4x2xf16, #compound.dims<M, K>>, %b: tensor<2x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf16, #compound.dims<M, N>> {
  %p = compound.gemm_softmax %x, %b : (tensor<4x2xf16, #compound.dims<M, K>>, tensor<2x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf16, #compound.dims<M, N>>
  %q = arith.addf %p, %p : tensor<4x8xf16, #compound.dims<M, N>>
  func.return %q : tensor<4x8xf16, #compound.dims<M, N>>
}

// CHECK: decompose: 'arith.addf' has no decomposition; ops with one are compound.

// -----

func.func @taken(%a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

func.func private @taken__reference(tensor<8xf32>) -> tensor<8xf32>

// CHECK: decompose: the name @taken__reference is taken; the reference of @taken needs it

// -----

func.func @foreign(%x: tensor<8xf32, #compound.dims<N>>) -> tensor<8xf32, #compound.dims<N>> {
  %y = compound.map exp %x : tensor<8xf32, #compound.dims<N>> -> tensor<8xf32, #compound.dims<N>>
  %one = arith.constant dense<1.0> : tensor<8xf32, #compound.dims<N>>
  %z = compound.map add %y, %one : tensor<8xf32, #compound.dims<N>>, tensor<8xf32, #compound.dims<N>> -> tensor<8xf32, #compound.dims<N>>
  func.return %z : tensor<8xf32, #compound.dims<N>>
}

// CHECK: decompose: 'arith.constant' of @foreign is not elementary; write it with ops of the compound dialect, a constant as compound.fill
