// RUN: comet-opt %s -p decompose,stream | filecheck %s
// Softmax times a matrix is one fold: flash attention.

func.func @attention(%q: tensor<1x2x3x16xf16>, %k: tensor<1x2x5x16xf16>, %v: tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x2x3x16xf16>, tensor<1x2x5x16xf16>, tensor<1x2x5x6xf16>) -> tensor<1x2x3x6xf16>
  func.return %o : tensor<1x2x3x6xf16>
}

// CHECK:      func.func @attention(%q: tensor<1x2x3x16xf16, #compound.dims<B, H, M, D>>, %k: tensor<1x2x5x16xf16, #compound.dims<B, H, N, D>>, %v: tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>>) -> tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>> {
// CHECK-NEXT:   %products = compound.contract %q, %k : tensor<1x2x3x16xf16, #compound.dims<B, H, M, D>>, tensor<1x2x5x16xf16, #compound.dims<B, H, N, D>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %scale = compound.fill 2.500000e-01 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:   %scores = compound.map mult %products, %scale : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<f32, #compound.dims<>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:   %nothing = compound.fill 0.000000e+00 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   %low = compound.fill -3.4028234663852886e+38 : tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:   %zero = compound.fill 0.000000e+00 : tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:   %m, %l, %o = compound.fold over "N" ins(%scores, %v : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>>) init(%low, %zero, %nothing : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>) step {
// CHECK-NEXT:   ^bb0(%scores_1: tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, %v_1: tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>>, %m_old: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %l_old: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %o_old: tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>):
// CHECK-NEXT:     %top = compound.reduce max %scores_1 : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %m_1 = compound.map max %m_old, %top : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %s = compound.map sub %scores_1, %m_1 : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:     %e = compound.map exp %s : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>>
// CHECK-NEXT:     %added = compound.reduce add %e : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %weights = compound.cast %e : tensor<1x2x3x5xf32, #compound.dims<B, H, M, N>> -> tensor<1x2x3x5xf16, #compound.dims<B, H, M, N>>
// CHECK-NEXT:     %ev = compound.contract %weights, %v_1 : tensor<1x2x3x5xf16, #compound.dims<B, H, M, N>>, tensor<1x2x5x6xf16, #compound.dims<B, H, N, E>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     %fall = compound.map sub %m_old, %m_1 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %scale_1 = compound.map exp %fall : tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept = compound.map mult %l_old, %scale_1 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept_1 = compound.map mult %o_old, %scale_1 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     %l_1 = compound.map add %kept, %added : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %o_1 = compound.map add %kept_1, %ev : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     compound.yield %m_1, %l_1, %o_1 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   } merge {
// CHECK-NEXT:   ^bb0(%m_one: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %l_one: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %o_one: tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, %m_other: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %l_other: tensor<1x2x3xf32, #compound.dims<B, H, M>>, %o_other: tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>):
// CHECK-NEXT:     %m_2 = compound.map max %m_one, %m_other : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %fall_1 = compound.map sub %m_one, %m_2 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %scale_2 = compound.map exp %fall_1 : tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept_2 = compound.map mult %l_one, %scale_2 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept_3 = compound.map mult %o_one, %scale_2 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     %fall_2 = compound.map sub %m_other, %m_2 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %scale_3 = compound.map exp %fall_2 : tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept_4 = compound.map mult %l_other, %scale_3 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %kept_5 = compound.map mult %o_other, %scale_3 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     %l_2 = compound.map add %kept_2, %kept_4 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3xf32, #compound.dims<B, H, M>>
// CHECK-NEXT:     %o_2 = compound.map add %kept_3, %kept_5 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:     compound.yield %m_2, %l_2, %o_2 : tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   } -> tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3xf32, #compound.dims<B, H, M>>, tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   %o_3 = compound.map div %o, %l : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>, tensor<1x2x3xf32, #compound.dims<B, H, M>> -> tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   %o_4 = compound.cast %o_3 : tensor<1x2x3x6xf32, #compound.dims<B, H, M, E>> -> tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>>
// CHECK-NEXT:   func.return %o_4 : tensor<1x2x3x6xf16, #compound.dims<B, H, M, E>>
// CHECK-NEXT: }
