// RUN: comet-opt %s -p decompose | filecheck %s

func.func @softmax(%a: tensor<4x2xf16>, %b: tensor<2x8xf16>) -> tensor<4x8xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x2xf16>, tensor<2x8xf16>) -> tensor<4x8xf16>
  func.return %p : tensor<4x8xf16>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @softmax(%a: tensor<4x2xf16, #compound.dims<M, K>>, %b: tensor<2x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf16, #compound.dims<M, N>> {
// CHECK-NEXT:     %c = compound.contract %a, %b : tensor<4x2xf16, #compound.dims<M, K>>, tensor<2x8xf16, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %m = compound.reduce max %c : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %s = compound.map sub %c, %m
// CHECK-NEXT:     %e = compound.map exp %s
// CHECK-NEXT:     %l = compound.reduce add %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %p = compound.map div %e, %l
// CHECK-NEXT:     %p_1 = compound.cast %p : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:     func.return %p_1 : tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @softmax__reference(%a: tensor<4x2xf16, #compound.dims<M, K>>, %b: tensor<2x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf16, #compound.dims<M, N>> attributes {comet.reference} {
// CHECK-NEXT:     %c = compound.contract %a, %b : tensor<4x2xf16, #compound.dims<M, K>>, tensor<2x8xf16, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %m = compound.reduce max %c : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %s = compound.map sub %c, %m
// CHECK-NEXT:     %e = compound.map exp %s
// CHECK-NEXT:     %l = compound.reduce add %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %p = compound.map div %e, %l
// CHECK-NEXT:     %p_1 = compound.cast %p : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:     func.return %p_1 : tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT: }
