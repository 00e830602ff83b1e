// RUN: comet-opt %s -p insert-collectives | filecheck %s

collective.mesh @gpus {rank = 4}

// The product has no sharding: every rank makes the whole of it, from a gathered %a.
func.func @gathered(%a: tensor<5x8xf16, #compound.dims<M, K>> {collective.shard = {K = ["rank"]}}, %b: tensor<8x6xf16, #compound.dims<K, N>>) -> tensor<5x6xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<5x8xf16, #compound.dims<M, K>>, tensor<8x6xf16, #compound.dims<K, N>> -> tensor<5x6xf32, #compound.dims<M, N>>
  func.return %c : tensor<5x6xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @gathered(%a: tensor<5x8xf16, #compound.dims<M, K>>, %b: tensor<8x6xf16, #compound.dims<K, N>>) -> tensor<5x6xf32, #compound.dims<M, N>> {
// CHECK-NEXT:     %c = collective.spmd on @gpus ins(%a, %b : tensor<5x8xf16, #compound.dims<M, K>>, tensor<8x6xf16, #compound.dims<K, N>>) sharded [{K = ["rank"]}, {}] outs(tensor<5x6xf32, #compound.dims<M, N>>) sharded [{}] {
// CHECK-NEXT:     ^bb0(%a_1: tensor<5x2xf16, #compound.dims<M, K>>, %b_1: tensor<8x6xf16, #compound.dims<K, N>>):
// CHECK-NEXT:       %a_2 = collective.all_gather "K" %a_1 on @gpus ["rank"] : tensor<5x2xf16, #compound.dims<M, K>> -> tensor<5x8xf16, #compound.dims<M, K>>
// CHECK-NEXT:       %c_1 = compound.contract %a_2, %b_1
// CHECK-NEXT:       collective.yield %c_1

// A rank holds terms of the product, and keeps the rows that the result's sharding says.
func.func @scattered(%a: tensor<5x8xf16, #compound.dims<M, K>> {collective.shard = {K = ["rank"]}}, %b: tensor<8x6xf16, #compound.dims<K, N>> {collective.shard = {K = ["rank"]}}) -> (tensor<5x6xf32, #compound.dims<M, N>> {collective.shard = {M = ["rank"]}}) {
  %c = compound.contract %a, %b {collective.shard = {K = ["rank"]}} : tensor<5x8xf16, #compound.dims<M, K>>, tensor<8x6xf16, #compound.dims<K, N>> -> tensor<5x6xf32, #compound.dims<M, N>>
  func.return %c : tensor<5x6xf32, #compound.dims<M, N>>
}

// CHECK:          collective.spmd on @gpus {{.*}} sharded [{K = ["rank"]}, {K = ["rank"]}] outs(tensor<5x6xf32, #compound.dims<M, N>>) sharded [{M = ["rank"]}] {
// CHECK-NEXT:     ^bb0(%a_1: tensor<5x2xf16, #compound.dims<M, K>>, %b_1: tensor<2x6xf16, #compound.dims<K, N>>):
// CHECK-NEXT:       %c_1 = compound.contract %a_1, %b_1
// CHECK-NEXT:       %c_2 = collective.reduce_scatter add "M" %c_1 on @gpus ["rank"] : tensor<5x6xf32, #compound.dims<M, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
// CHECK-NEXT:       collective.yield %c_2
