// RUN: comet-opt %s -p decompose | filecheck %s
// Scores, their softmax, and the product with the values, by batch entry and head.

func.func @attention(%q: tensor<1x2x3x16xf16>, %k: tensor<1x2x5x16xf16>, %v: tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x2x3x16xf16>, tensor<1x2x5x16xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
  func.return %o : tensor<1x2x3x6xf16>
}

// CHECK:      func.func @attention(%q: tensor<1x2x3x16xf16, #compound.dims<B, H, M, D>>, %k: tensor<1x2x5x16xf16, #compound.dims<B, H, N, D>>, %v: tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>>) -> tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>> {
// CHECK-NEXT:   %products = compound.contract %q, %k : tensor<1x2x3x16xf16, #compound.dims<B, H, M, D>>, tensor<1x2x5x16xf16, #compound.dims<B, H, N, D>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %scale = compound.fill 2.500000e-01 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:   %scores = compound.map mult %products, %scale : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<f32, #compound.dims<>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %m = compound.reduce max %scores : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:   %s = compound.map sub %scores, %m : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %e = compound.map exp %s : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %l = compound.reduce add %e : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:   %p = compound.map div %e, %l : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %p_1 = compound.cast %p : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3x5xf16, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %o = compound.contract %p_1, %v : tensor<1x2x3x5xf16, #compound.dims<B, H, M, N>>, tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   %o_1 = compound.cast %o : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>> -> tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   func.return %o_1 : tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>>
// CHECK-NEXT: }
