// RUN: comet-opt %s -p stream | filecheck %s

func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %m = compound.reduce max %c : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map sub %c, %m : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %e = compound.map exp %s : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %l = compound.reduce add %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %p = compound.map div %e, %l : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
// CHECK-NEXT:     %c = compound.contract %a, %b : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %low = compound.fill -3.4028234663852886e+38 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %zero = compound.fill 0.000000e+00 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %m, %l = compound.fold over "N" ins(%c : tensor<4x8xf32, #compound.dims<M, N>>) init(%low, %zero : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) step {
// CHECK-NEXT:     ^bb0(%c_1: tensor<4x8xf32, #compound.dims<M, N>>, %m_old: tensor<4xf32, #compound.dims<M>>, %l_old: tensor<4xf32, #compound.dims<M>>):
// CHECK-NEXT:       %top = compound.reduce max %c_1 : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %m_1 = compound.map max %m_old, %top
// CHECK-NEXT:       %s = compound.map sub %c_1, %m_1
// CHECK-NEXT:       %e = compound.map exp %s
// CHECK-NEXT:       %added = compound.reduce add %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %fall = compound.map sub %m_old, %m_1
// CHECK-NEXT:       %scale = compound.map exp %fall
// CHECK-NEXT:       %kept = compound.map mult %l_old, %scale
// CHECK-NEXT:       %l_1 = compound.map add %kept, %added
// CHECK-NEXT:       compound.yield %m_1, %l_1 : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     } merge {
// CHECK-NEXT:     ^bb0(%m_one: tensor<4xf32, #compound.dims<M>>, %l_one: tensor<4xf32, #compound.dims<M>>, %m_other: tensor<4xf32, #compound.dims<M>>, %l_other: tensor<4xf32, #compound.dims<M>>):
// CHECK-NEXT:       %m_2 = compound.map max %m_one, %m_other
// CHECK-NEXT:       %fall_1 = compound.map sub %m_one, %m_2
// CHECK-NEXT:       %scale_1 = compound.map exp %fall_1
// CHECK-NEXT:       %kept_1 = compound.map mult %l_one, %scale_1
// CHECK-NEXT:       %fall_2 = compound.map sub %m_other, %m_2
// CHECK-NEXT:       %scale_2 = compound.map exp %fall_2
// CHECK-NEXT:       %kept_2 = compound.map mult %l_other, %scale_2
// CHECK-NEXT:       %l_2 = compound.map add %kept_1, %kept_2
// CHECK-NEXT:       compound.yield %m_2, %l_2 : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     } -> tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %s_1 = compound.map sub %c, %m
// CHECK-NEXT:     %e_1 = compound.map exp %s_1
// CHECK-NEXT:     %p = compound.map div %e_1, %l
// CHECK-NEXT:     func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT: }
