// RUN: comet-opt %s -p lower-reductions | filecheck %s
// RUN: comet-opt %s -p lower-reductions{terms=narrow} | filecheck %s --check-prefix=CHECK-NARROW

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

// Terms are in memory, so that they are renamed for free, and their sum is not; a sum
// that others read too is renamed itself.
func.func @renamed(%a: tensor<8x8xf32, #compound.dims<M, K>>) -> (tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<M>>) {
  %x, %y, %z = collective.spmd on @gpus ins(%a : tensor<8x8xf32, #compound.dims<M, K>>) sharded [{K = ["rank"]}] outs(tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<M>>) sharded [{P = ["rank"]}, {}, {}] {
  ^bb0(%l: !MK):
    %c = compound.reduce add %l : !MK -> tensor<8xf32, #compound.dims<M>>
    %part = collective.reduce_scatter add "M" %c on @gpus ["rank"] : tensor<8xf32, #compound.dims<M>> -> tensor<2xf32, #compound.dims<M>>
    %p = compound.rename %part : tensor<2xf32, #compound.dims<M>> -> tensor<2xf32, #compound.dims<P>>
    %s = collective.all_reduce add %c on @gpus ["rank"] : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
    %t = compound.rename %s : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<P>>
    collective.yield %p, %t, %s : tensor<2xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<M>>
  }
  func.return %x, %y, %z : tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<P>>, tensor<8xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @renamed
// CHECK:      %c_terms = collective.all_to_all split "M" concat "rank_part" %c
// CHECK-NEXT: %c_terms_1 = compound.rename %c_terms : tensor<4x2xf32, #compound.dims<rank_part, M>> -> tensor<4x2xf32, #compound.dims<rank_part, P>>
// CHECK-NEXT: %p = compound.reduce add %c_terms_1 : tensor<4x2xf32, #compound.dims<rank_part, P>> -> tensor<2xf32, #compound.dims<P>>
// CHECK-NEXT: %c_terms_2 = collective.all_gather "rank_part" %c
// CHECK-NEXT: %s = compound.reduce add %c_terms_2
// CHECK-NEXT: %t = compound.rename %s

// A sum that is only cast to 16 bits: its terms are sent in 16 bits on request.
func.func @cast(%a: tensor<8x8xf32, #compound.dims<M, K>>, %b: tensor<8x6xf32, #compound.dims<K, N>>) -> tensor<8x6xf16, #compound.dims<M, N>> {
  %x = collective.spmd on @gpus ins(%a, %b : tensor<8x8xf32, #compound.dims<M, K>>, tensor<8x6xf32, #compound.dims<K, N>>) sharded [{K = ["rank"]}, {K = ["rank"]}] outs(tensor<8x6xf16, #compound.dims<M, N>>) sharded [{}] {
  ^bb0(%l: !MK, %r: !KN):
    %c = compound.contract %l, %r : !MK, !KN -> !MN
    %sum = collective.all_reduce add %c on @gpus ["rank"] from "HBM" to "HBM" : !MN -> !MN
    %y = compound.cast %sum : !MN -> tensor<8x6xf16, #compound.dims<M, N>>
    collective.yield %y : tensor<8x6xf16, #compound.dims<M, N>>
  }
  func.return %x : tensor<8x6xf16, #compound.dims<M, N>>
}

// CHECK-NARROW-LABEL: func.func @cast
// CHECK-NARROW:      %c_1 = compound.cast %c : {{.*}} -> tensor<8x6xf16, #compound.dims<M, N>>
// CHECK-NARROW-NEXT: %c_terms = collective.all_gather "rank_part" %c_1 {{.*}} -> tensor<4x8x6xf16, #compound.dims<rank_part, M, N>>
// CHECK-NARROW-NEXT: %c_terms_1 = compound.cast %c_terms : {{.*}} -> tensor<4x8x6xf32, #compound.dims<rank_part, M, N>>
// CHECK-NARROW-NEXT: %sum = compound.reduce add %c_terms_1
// CHECK-NARROW-NEXT: %y = compound.cast %sum
