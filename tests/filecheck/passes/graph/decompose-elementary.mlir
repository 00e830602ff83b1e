// RUN: comet-opt %s -p decompose | filecheck %s
// RUN: comet-opt %s -p decompose,decompose | filecheck %s

// What is elementary already stays; it only gets a reference, once.

// CHECK:      func.func @main(%x: tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}})
// CHECK-NEXT:   %m = compound.reduce max %x {collective.shard = {M = ["rank"]}}
// CHECK-NEXT:   func.return %m
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @main__reference(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> attributes {comet.reference} {
// CHECK-NEXT:   %m = compound.reduce max %x : tensor
// CHECK-NEXT:   func.return %m
// CHECK-NEXT: }
// CHECK-NEXT: }

func.func @main(%x: tensor<4x8xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}}) -> tensor<4xf32, #compound.dims<M>> {
  %m = compound.reduce max %x {collective.shard = {M = ["rank"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}
