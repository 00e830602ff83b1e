// RUN: comet-opt %s -p sink-renames | filecheck %s

// Queries and keys are products of one value; the keys are renamed afterwards.

func.func @scores(%x: tensor<4x8xf32, #compound.dims<M, D>>, %w: tensor<8x6xf32, #compound.dims<D, E>>, %u: tensor<8x6xf32, #compound.dims<D, E>>) -> tensor<4x4xf32, #compound.dims<M, N>> {
  %h = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %keys = compound.rename %h : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<N, D>>
  %q = compound.contract %h, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  %k = compound.contract %keys, %u : tensor<4x8xf32, #compound.dims<N, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<N, E>>
  %s = compound.contract %q, %k : tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<N, E>> -> tensor<4x4xf32, #compound.dims<M, N>>
  func.return %s : tensor<4x4xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @scores
// CHECK-NEXT:   %h = compound.map exp %x
// CHECK-NEXT:   %q = compound.contract %h, %w
// CHECK-NEXT:   %k = compound.contract %h, %u : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
// CHECK-NEXT:   %k_1 = compound.rename %k : tensor<4x6xf32, #compound.dims<M, E>> -> tensor<4x6xf32, #compound.dims<N, E>>
// CHECK-NEXT:   %s = compound.contract %q, %k_1

// Both operands are renamed alike; a reduction keeps what it reduces; what is returned
// is computed under its own names.

func.func @alike(%x: tensor<4x8xf32, #compound.dims<M, D>>) -> tensor<8xf32, #compound.dims<E>> {
  %h = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %m = compound.reduce max %h : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<8xf32, #compound.dims<D>>
  %a = compound.rename %h : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<N, E>>
  %b = compound.rename %m : tensor<8xf32, #compound.dims<D>> -> tensor<8xf32, #compound.dims<E>>
  %s = compound.map sub %a, %b : tensor<4x8xf32, #compound.dims<N, E>>, tensor<8xf32, #compound.dims<E>> -> tensor<4x8xf32, #compound.dims<N, E>>
  %r = compound.reduce add %s : tensor<4x8xf32, #compound.dims<N, E>> -> tensor<8xf32, #compound.dims<E>>
  %y = compound.map exp %r : tensor<8xf32, #compound.dims<E>> -> tensor<8xf32, #compound.dims<E>>
  func.return %y : tensor<8xf32, #compound.dims<E>>
}

// CHECK-LABEL: func.func @alike
// CHECK:        %s = compound.map sub %h, %m : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8xf32, #compound.dims<D>>
// CHECK-NEXT:   %r = compound.reduce add %s : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<8xf32, #compound.dims<D>>
// CHECK-NEXT:   %r_1 = compound.rename %r : tensor<8xf32, #compound.dims<D>> -> tensor<8xf32, #compound.dims<E>>
// CHECK-NEXT:   %y = compound.map exp %r_1

// These stay: of an argument; with an operand that is not renamed; with the old name.

func.func @stay(%x: tensor<4x8xf32, #compound.dims<M, D>>, %n: tensor<4xf32, #compound.dims<N>>) -> (tensor<4x8xf32, #compound.dims<N, D>>, tensor<4x8xf32, #compound.dims<N, D>>, tensor<4x4xf32, #compound.dims<M, N>>) {
  %y = compound.rename %x : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<N, D>>
  %e = compound.map exp %y : tensor<4x8xf32, #compound.dims<N, D>> -> tensor<4x8xf32, #compound.dims<N, D>>
  %h = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %k = compound.rename %h : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<N, D>>
  %p = compound.map mult %k, %n : tensor<4x8xf32, #compound.dims<N, D>>, tensor<4xf32, #compound.dims<N>> -> tensor<4x8xf32, #compound.dims<N, D>>
  %s = compound.contract %h, %k : tensor<4x8xf32, #compound.dims<M, D>>, tensor<4x8xf32, #compound.dims<N, D>> -> tensor<4x4xf32, #compound.dims<M, N>>
  func.return %e, %p, %s : tensor<4x8xf32, #compound.dims<N, D>>, tensor<4x8xf32, #compound.dims<N, D>>, tensor<4x4xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @stay
// CHECK-NEXT:   %y = compound.rename %x
// CHECK-NEXT:   %e = compound.map exp %y
// CHECK-NEXT:   %h = compound.map exp %x
// CHECK-NEXT:   %k = compound.rename %h
// CHECK-NEXT:   %p = compound.map mult %k, %n
// CHECK-NEXT:   %s = compound.contract %h, %k

// Collectives send what is in memory, of an argument too, and what arrives is renamed;
// what a collective returns is computed under its own names.

collective.mesh @ranks {rank = 4}
func.func @sent(%x: tensor<8x64xf32, #compound.dims<M, K>>, %w: tensor<64x12xf32, #compound.dims<K, N>>) -> (tensor<8x12xf32, #compound.dims<P, N>>, tensor<64xf32, #compound.dims<J>>, tensor<64x8xf32, #compound.dims<J, M>>, tensor<8xf32, #compound.dims<P>>) {
  %0, %1, %2, %3 = collective.spmd on @ranks ins(%x, %w : tensor<8x64xf32, #compound.dims<M, K>>, tensor<64x12xf32, #compound.dims<K, N>>) sharded [{K = ["rank"]}, {K = ["rank"]}] outs(tensor<8x12xf32, #compound.dims<P, N>>, tensor<64xf32, #compound.dims<J>>, tensor<64x8xf32, #compound.dims<J, M>>, tensor<8xf32, #compound.dims<P>>) sharded [{P = ["rank"]}, {}, {M = ["rank"]}, {}] {
  ^bb0(%a: tensor<8x16xf32, #compound.dims<M, K>>, %b: tensor<16x12xf32, #compound.dims<K, N>>):
    %c = compound.contract %a, %b : tensor<8x16xf32, #compound.dims<M, K>>, tensor<16x12xf32, #compound.dims<K, N>> -> tensor<8x12xf32, #compound.dims<M, N>>
    %p = compound.rename %c : tensor<8x12xf32, #compound.dims<M, N>> -> tensor<8x12xf32, #compound.dims<P, N>>
    %s = collective.reduce_scatter add "P" %p on @ranks ["rank"] : tensor<8x12xf32, #compound.dims<P, N>> -> tensor<2x12xf32, #compound.dims<P, N>>
    %m = compound.map tanh %s : tensor<2x12xf32, #compound.dims<P, N>> -> tensor<2x12xf32, #compound.dims<P, N>>
    %q = compound.rename %a : tensor<8x16xf32, #compound.dims<M, K>> -> tensor<8x16xf32, #compound.dims<M, J>>
    %g = collective.all_gather "J" %q on @ranks ["rank"] : tensor<8x16xf32, #compound.dims<M, J>> -> tensor<8x64xf32, #compound.dims<M, J>>
    %h = compound.reduce max %g : tensor<8x64xf32, #compound.dims<M, J>> -> tensor<64xf32, #compound.dims<J>>
    %e = collective.all_to_all split "M" concat "J" %q on @ranks ["rank"] : tensor<8x16xf32, #compound.dims<M, J>> -> tensor<2x64xf32, #compound.dims<M, J>>
    %t = compound.map tanh %e : tensor<2x64xf32, #compound.dims<M, J>> -> tensor<64x2xf32, #compound.dims<J, M>>
    %r = compound.reduce add %p : tensor<8x12xf32, #compound.dims<P, N>> -> tensor<8xf32, #compound.dims<P>>
    %all = collective.all_reduce add %r on @ranks ["rank"] : tensor<8xf32, #compound.dims<P>> -> tensor<8xf32, #compound.dims<P>>
    collective.yield %m, %h, %t, %all : tensor<2x12xf32, #compound.dims<P, N>>, tensor<64xf32, #compound.dims<J>>, tensor<64x2xf32, #compound.dims<J, M>>, tensor<8xf32, #compound.dims<P>>
  }
  func.return %0, %1, %2, %3 : tensor<8x12xf32, #compound.dims<P, N>>, tensor<64xf32, #compound.dims<J>>, tensor<64x8xf32, #compound.dims<J, M>>, tensor<8xf32, #compound.dims<P>>
}

// CHECK-LABEL: func.func @sent
// CHECK:          %c = compound.contract %a, %b
// CHECK-NEXT:     %p = compound.rename %c
// CHECK-NEXT:     %s = collective.reduce_scatter add "M" %c on @ranks ["rank"] : tensor<8x12xf32, #compound.dims<M, N>> -> tensor<2x12xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %s_1 = compound.rename %s : tensor<2x12xf32, #compound.dims<M, N>> -> tensor<2x12xf32, #compound.dims<P, N>>
// CHECK-NEXT:     %m = compound.map tanh %s_1
// CHECK-NEXT:     %g = collective.all_gather "K" %a on @ranks ["rank"]
// CHECK-NEXT:     %g_1 = compound.rename %g : tensor<8x64xf32, #compound.dims<M, K>> -> tensor<8x64xf32, #compound.dims<M, J>>
// CHECK-NEXT:     %h = compound.reduce max %g_1
// CHECK-NEXT:     %e = collective.all_to_all split "M" concat "K" %a on @ranks ["rank"]
// CHECK-NEXT:     %e_1 = compound.rename %e : tensor<2x64xf32, #compound.dims<M, K>> -> tensor<2x64xf32, #compound.dims<M, J>>
// CHECK-NEXT:     %t = compound.map tanh %e_1
// CHECK-NEXT:     %r = compound.reduce add %p
// CHECK-NEXT:     %all = collective.all_reduce add %r

// A slice or a concat is read where it lies in memory, under any names.

func.func @parts(%x: tensor<4x8xf32, #compound.dims<M, D>>) -> tensor<4x3xf16, #compound.dims<M, E>> {
  %h = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %s = compound.slice %h "D"[2, 3] : tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x3xf32, #compound.dims<M, D>>
  %p = compound.rename %s : tensor<4x3xf32, #compound.dims<M, D>> -> tensor<4x3xf32, #compound.dims<M, E>>
  %y = compound.map exp %p : tensor<4x3xf32, #compound.dims<M, E>> -> tensor<4x3xf32, #compound.dims<M, E>>
  %c = compound.cast %y : tensor<4x3xf32, #compound.dims<M, E>> -> tensor<4x3xf16, #compound.dims<M, E>>
  func.return %c : tensor<4x3xf16, #compound.dims<M, E>>
}

// CHECK-LABEL: func.func @parts
// CHECK:        %p = compound.rename %s
// CHECK-NEXT:   %y = compound.map exp %p : tensor<4x3xf32, #compound.dims<M, E>>
// CHECK-NEXT:   %c = compound.cast %y
