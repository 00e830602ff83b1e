// RUN: comet-opt %s -p 'decompose{accumulator=input}' | filecheck %s

func.func @layernorm(%a: tensor<4x2xf16>, %b: tensor<2x8xf16>, %gamma: tensor<8xf16>, %beta: tensor<8xf16>) -> tensor<4x8xf16> {
  %y = compound.gemm_layernorm %a, %b, %gamma, %beta epsilon 1.000000e-03 : (tensor<4x2xf16>, tensor<2x8xf16>, tensor<8xf16>, tensor<8xf16>) -> tensor<4x8xf16>
  func.return %y : tensor<4x8xf16>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @layernorm(%a: tensor<4x2xf16, #compound.dims<M, K>>, %b: tensor<2x8xf16, #compound.dims<K, N>>, %gamma: tensor<8xf16, #compound.dims<N>>, %beta: tensor<8xf16, #compound.dims<N>>) -> tensor<4x8xf16, #compound.dims<M, N>> {
// CHECK-NEXT:     %c = compound.contract %a, %b : tensor<4x2xf16, #compound.dims<M, K>>, tensor<2x8xf16, #compound.dims<K, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:     %inverse_n = compound.fill 1.250000e-01 : tensor<f16, #compound.dims<>>
// CHECK-NEXT:     %sum = compound.reduce add %c : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
// CHECK-NEXT:     %mean = compound.map mult %sum, %inverse_n
// CHECK-NEXT:     %centred = compound.map sub %c, %mean
// CHECK-NEXT:     %square = compound.map mult %centred, %centred
// CHECK-NEXT:     %squares = compound.reduce add %square : tensor<4x8xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
// CHECK-NEXT:     %variance = compound.map mult %squares, %inverse_n
// CHECK-NEXT:     %epsilon = compound.fill 1.000000e-03 : tensor<f16, #compound.dims<>>
// CHECK-NEXT:     %shifted = compound.map add %variance, %epsilon
// CHECK-NEXT:     %deviation = compound.map sqrt %shifted
// CHECK-NEXT:     %normal = compound.map div %centred, %deviation
// CHECK-NEXT:     %scaled = compound.map mult %normal, %gamma
// CHECK-NEXT:     %y = compound.map add %scaled, %beta
// CHECK-NEXT:     func.return %y : tensor<4x8xf16, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT: }
