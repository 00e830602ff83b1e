// RUN: comet-opt %s -p 'split{dim=K parts=2}' | filecheck %s

// A product in two parts of K: partial products, and their sum.
func.func @product(%a: tensor<4x6xf16, #compound.dims<M, K>>, %b: tensor<6x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b {collective.shard = {K = ["rank"]}} : tensor<4x6xf16, #compound.dims<M, K>>, tensor<6x8xf16, #compound.dims<K, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %c : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK:      func.func @product(%a: tensor<4x6xf16, #compound.dims<M, K>>, %b: tensor<6x8xf16, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
// CHECK-NEXT:   %a_1 = compound.rename %a split "K" : tensor<4x6xf16, #compound.dims<M, K>> -> tensor<4x2x3xf16, #compound.dims<M, K_part, K_in>>
// CHECK-NEXT:   %b_1 = compound.rename %b split "K" : tensor<6x8xf16, #compound.dims<K, N>> -> tensor<2x3x8xf16, #compound.dims<K_part, K_in, N>>
// CHECK-NEXT:   %c = compound.contract %a_1, %b_1 {collective.shard = {K_part = ["rank"]}} : tensor<4x2x3xf16, #compound.dims<M, K_part, K_in>>, tensor<2x3x8xf16, #compound.dims<K_part, K_in, N>> -> tensor<2x4x8xf32, #compound.dims<K_part, M, N>>
// CHECK-NEXT:   %c_1 = compound.rename %c : tensor<2x4x8xf32, #compound.dims<K_part, M, N>> -> tensor<2x4x8xf32, #compound.dims<K_parts, M, N>>
// CHECK-NEXT:   %c_2 = compound.reduce add %c_1 {collective.shard = {K_parts = ["rank"]}} : tensor<2x4x8xf32, #compound.dims<K_parts, M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK-NEXT:   func.return %c_2

// A fold of each part, and a fold of their maxima.
func.func @maximum(%x: tensor<4x6xf32, #compound.dims<M, K>>) -> tensor<4xf32, #compound.dims<M>> {
  %low = compound.fill -1.0e30 : tensor<4xf32, #compound.dims<M>>
  %m = compound.fold over "K" ins(%x : tensor<4x6xf32, #compound.dims<M, K>>) init(%low : tensor<4xf32, #compound.dims<M>>) step {
  ^bb0(%c: tensor<4x6xf32, #compound.dims<M, K>>, %old: tensor<4xf32, #compound.dims<M>>):
    %top = compound.reduce max %c : tensor<4x6xf32, #compound.dims<M, K>> -> tensor<4xf32, #compound.dims<M>>
    %now = compound.map max %old, %top : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    compound.yield %now : tensor<4xf32, #compound.dims<M>>
  } merge {
  ^bb1(%one: tensor<4xf32, #compound.dims<M>>, %other: tensor<4xf32, #compound.dims<M>>):
    %now = compound.map max %one, %other : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    compound.yield %now : tensor<4xf32, #compound.dims<M>>
  } -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK:        %neutral = compound.fill {{.*}} : tensor<2x4xf32, #compound.dims<K_part, M>>
// CHECK-NEXT:   %m = compound.fold over "K_in" partial ins(%x_1 : tensor<4x2x3xf32, #compound.dims<M, K_part, K_in>>) init(%neutral : tensor<2x4xf32, #compound.dims<K_part, M>>)  step {
// CHECK-NEXT:   ^bb0(%c: tensor<4x2x3xf32, #compound.dims<M, K_part, K_in>>, %old: tensor<2x4xf32, #compound.dims<K_part, M>>):
// CHECK-NEXT:     %top = compound.reduce max %c : tensor<4x2x3xf32, #compound.dims<M, K_part, K_in>> -> tensor<2x4xf32, #compound.dims<K_part, M>>
// CHECK-NEXT:     %now = compound.map max %old, %top
// CHECK-NEXT:     compound.yield %now
// CHECK:        %m_1 = compound.rename %m : tensor<2x4xf32, #compound.dims<K_part, M>> -> tensor<2x4xf32, #compound.dims<K_parts, M>>
// CHECK-NEXT:   %m_2 = compound.fold over "K_parts" ins(%m_1 : tensor<2x4xf32, #compound.dims<K_parts, M>>) init(%low : tensor<4xf32, #compound.dims<M>>)
// CHECK:        func.return %m_2

// Of two dimensions that are seen as one, the outer one is in parts.
func.func @pages(%x: tensor<9x2xf32, #compound.dims<P, R>>, %i: tensor<8xi32, #compound.dims<J>>) -> tensor<f32, #compound.dims<>> {
  %g = compound.gather %x, %i along "P" : tensor<9x2xf32, #compound.dims<P, R>>, tensor<8xi32, #compound.dims<J>> -> tensor<8x2xf32, #compound.dims<J, R>>
  %y = compound.rename %g merge "J" : tensor<8x2xf32, #compound.dims<J, R>> -> tensor<16xf32, #compound.dims<K>>
  %m = compound.reduce max %y : tensor<16xf32, #compound.dims<K>> -> tensor<f32, #compound.dims<>>
  func.return %m : tensor<f32, #compound.dims<>>
}

// CHECK:      func.func @pages
// CHECK-NEXT:   %g = compound.gather %x, %i along "P"
// CHECK-NEXT:   %g_1 = compound.rename %g split "J" : tensor<8x2xf32, #compound.dims<J, R>> -> tensor<2x4x2xf32, #compound.dims<K_part, J_in, R>>
// CHECK-NEXT:   %y = compound.rename %g_1 merge "J_in" : tensor<2x4x2xf32, #compound.dims<K_part, J_in, R>> -> tensor<2x8xf32, #compound.dims<K_part, K_in>>
// CHECK-NEXT:   %m = compound.reduce max %y : tensor<2x8xf32, #compound.dims<K_part, K_in>> -> tensor<2xf32, #compound.dims<K_part>>
