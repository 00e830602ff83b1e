// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'stream{dim=N}' | filecheck %s

func.func @chain(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map sub %x, %m : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %r = compound.reduce add %s : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  func.return %r : tensor<4xf32, #compound.dims<M>>
}

// CHECK: stream: 'compound.reduce' op %r reduces N and needs 'compound.reduce' op %m, which reduces N, too, and no form matches both (softmax times a matrix, softmax times factors times a matrix, softmax statistics, mean and variance); write them as a compound.fold, or leave stream out

// -----

func.func @other(%x: tensor<4x8xf32, #compound.dims<M, K>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: stream: no op has the dimension N; the module's dimensions are K, M

// -----

func.func @graph(%a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

// CHECK: stream: @graph is at the graph level and this pass takes the elementary or spmd level; run decompose first
