// RUN: comet-opt %s -p lower-reductions | filecheck %s

collective.mesh @gpus {rank = 4}

!MK = tensor<8x2xf32, #compound.dims<M, K>>
!KN = tensor<2x6xf32, #compound.dims<K, N>>
!MN = tensor<8x6xf32, #compound.dims<M, N>>

func.func @product(%a: tensor<8x8xf32, #compound.dims<M, K>>, %b: tensor<8x6xf32, #compound.dims<K, N>>) -> (!MN, !MN) {
  %x, %y = collective.spmd on @gpus ins(%a, %b : tensor<8x8xf32, #compound.dims<M, K>>, tensor<8x6xf32, #compound.dims<K, N>>) sharded [{K = ["rank"]}, {K = ["rank"]}] outs(!MN, !MN) sharded [{}, {M = ["rank"]}] {
  ^bb0(%l: !MK, %r: !KN):
    %c = compound.contract %l, %r : !MK, !KN -> !MN
    %sum = collective.all_reduce add %c on @gpus ["rank"] from "HBM" to "HBM" algorithm ring : !MN -> !MN
    %part = collective.reduce_scatter add "M" %c on @gpus ["rank"] from "HBM" to "HBM" : !MN -> tensor<2x6xf32, #compound.dims<M, N>>
    collective.yield %sum, %part : !MN, tensor<2x6xf32, #compound.dims<M, N>>
  }
  func.return %x, %y : !MN, !MN
}

// CHECK:      %c = compound.contract %l, %r
// CHECK-NEXT: %c_terms = collective.all_gather "rank_part" %c on @gpus ["rank"] from "HBM" to "HBM" : tensor<8x6xf32, #compound.dims<M, N>> -> tensor<4x8x6xf32, #compound.dims<rank_part, M, N>>
// CHECK-NEXT: %sum = compound.reduce add %c_terms : tensor<4x8x6xf32, #compound.dims<rank_part, M, N>> -> tensor<8x6xf32, #compound.dims<M, N>>
// CHECK-NEXT: %c_terms_1 = collective.all_to_all split "M" concat "rank_part" %c on @gpus ["rank"] from "HBM" to "HBM" : tensor<8x6xf32, #compound.dims<M, N>> -> tensor<4x2x6xf32, #compound.dims<rank_part, M, N>>
// CHECK-NEXT: %part = compound.reduce add %c_terms_1 : tensor<4x2x6xf32, #compound.dims<rank_part, M, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
// CHECK-NEXT: collective.yield %sum, %part

// Collectives that reduce nothing stay.
func.func @moved(%a: !MN) -> !MN {
  %x = collective.spmd on @gpus ins(%a : !MN) sharded [{M = ["rank"]}] outs(!MN) sharded [{}] {
  ^bb0(%l: tensor<2x6xf32, #compound.dims<M, N>>):
    %g = collective.all_gather "M" %l on @gpus ["rank"] : tensor<2x6xf32, #compound.dims<M, N>> -> !MN
    collective.yield %g : !MN
  }
  func.return %x : !MN
}

// CHECK:      %g = collective.all_gather "M" %l
// CHECK-NEXT: collective.yield %g
