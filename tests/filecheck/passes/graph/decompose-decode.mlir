// RUN: comet-opt %s -p decompose | filecheck %s

func.func @main(%q: tensor<2x1x3x4xf16>, %k: tensor<2x1x8x4xf16> {collective.shard = {S = ["rank"]}}, %v: tensor<2x1x8x5xf16>, %lens: tensor<2xi32>) -> tensor<2x1x3x5xf16> {
  %o = compound.flash_decode %q, %k, %v, %lens {collective.shard = {S = ["rank"]}} : (tensor<2x1x3x4xf16>, tensor<2x1x8x4xf16>, tensor<2x1x8x5xf16>, tensor<2xi32>) -> tensor<2x1x3x5xf16>
  func.return %o : tensor<2x1x3x5xf16>
}

// CHECK:      func.func @main(%q: tensor<2x1x3x4xf16, #compound.dims<B, H, G, D>>, %k: tensor<2x1x8x4xf16, #compound.dims<B, H, S, D>> {collective.shard = {S = ["rank"]}}, %v: tensor<2x1x8x5xf16, #compound.dims<B, H, S, E>>, %lens: tensor<2xi32, #compound.dims<B>> {compound.at_most = 8 : i64}) -> tensor<2x1x3x5xf16, #compound.dims<B, H, G, E>> {
// CHECK-NEXT:   %products = compound.contract %q, %k {collective.shard = {S = ["rank"]}}
// CHECK-NEXT:   %scale = compound.fill 5.000000e-01
// CHECK-NEXT:   %scores = compound.map mult %products, %scale {collective.shard = {S = ["rank"]}}
// CHECK-NEXT:   %hidden = compound.fill -1.7014117331926443e+38
// CHECK-NEXT:   %s_index = compound.index : tensor<8xi32, #compound.dims<S>>
// CHECK-NEXT:   %one = compound.fill 1.000000e+00
// CHECK-NEXT:   %last = compound.map sub %lens, %one
// CHECK-NEXT:   %visible = compound.map ge %last, %s_index {collective.shard = {S = ["rank"]}} : tensor<2xi32, #compound.dims<B>>, tensor<8xi32, #compound.dims<S>> -> tensor<2x8xi1, #compound.dims<B, S>>
// CHECK-NEXT:   %masked = compound.map select %visible, %scores, %hidden {collective.shard = {S = ["rank"]}}
// CHECK-NEXT:   %m = compound.reduce max %masked
