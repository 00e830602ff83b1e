// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op yields one value, with one sharding, per result in a final collective.yield
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l, %l : !MN, !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op yields one value, with one sharding, per result in a final collective.yield
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  "test.termop"() : () -> ()
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op has 1 operands, 0 shardings and 1 block arguments
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op tensor<8x12xf16, #compound.dims<M, N>> and its local tensor<8x2xf16, #compound.dims<M, P>> name the same dimensions
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: tensor<8x2xf16, #compound.dims<M, P>>):
  collective.yield %l : tensor<8x2xf16, #compound.dims<M, P>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op keeps the element type of tensor<8x12xf16, #compound.dims<M, N>>
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: tensor<8x2xf32, #compound.dims<M, N>>):
  collective.yield %l : tensor<8x2xf32, #compound.dims<M, N>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op mesh @m has no axis 'z'; its axes are x, y
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["z"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op axis 'x' is named twice
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{M = ["x"], N = ["x"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op shards K, which tensor<8x12xf16, #compound.dims<M, N>> does not have
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{K = ["x"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op N = 12 over 2 instances is 6 each, got 2
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: sharding of N is a list of mesh axis names
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", 1]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: sharding of N is a list of mesh axis names
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = []}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op yields a value that is partial(add) over axis 'x' where its sharding says replicated; a collective.all_reduce add is missing
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  collective.yield %p : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
!whole = tensor<8xi32, #compound.dims<M>>
// CHECK: 'compound.cast' op operand 0 is partial(add) over axis 'x'; a collective.all_reduce add is missing
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!whole) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  %t = compound.cast %p : !M -> !whole
  collective.yield %t : !whole
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'compound.map' op operand 0 is partial(add) over axis 'x'; a collective.all_reduce add is missing
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  %n = compound.map neg %p : !M -> !M
  collective.yield %n : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'compound.contract' op operand 0 is partial(add) over axis 'x'
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  %n = compound.contract %p, %p : !M, !M -> !M
  collective.yield %n : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'compound.reduce' op max of a value that is partial(add) over axis 'x'
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(tensor<f16, #compound.dims<>>) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  %n = compound.reduce max %p : !M -> tensor<f16, #compound.dims<>>
  collective.yield %n : tensor<f16, #compound.dims<>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op reduces by max over axis 'x' a value that is partial(add)
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  %p = compound.reduce add %l : !MN -> !M
  %n = collective.all_reduce max %p on @m ["x", "y"] : !M -> !M
  collective.yield %n : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_reduce' op reduces by add over axis 'x' a value that is sharded(N)
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %n = collective.all_reduce add %l on @m ["x"] : !MN -> !MN
  collective.yield %n : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.spmd' op yields N split over x, y where its sharding says y, x; the order counts
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["y", "x"]}] {
^bb0(%l: !MN):
  collective.yield %l : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_reduce' op is on mesh @other, the region on @m
collective.mesh @other {x = 4}
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %o = collective.all_reduce add %l on @other ["x"] : !MN -> !MN
  collective.yield %o : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'test.op' op is not understood inside collective.spmd; only compound and collective ops are
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %o = "test.op"(%l) : (!MN) -> !MN
  collective.yield %o : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
// CHECK: 'compound.map' op axis 'x' splits N of one operand and M of another; reshard one of them
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a, %a : !G, !G) sharded [{N = ["x"]}, {M = ["x"]}] outs(tensor<4x12xf16, #compound.dims<M, N>>) sharded [{N = ["x"]}] {
^bb0(%l: tensor<8x6xf16, #compound.dims<M, N>>, %k: tensor<4x12xf16, #compound.dims<M, N>>):
  %s = compound.reduce max %l : tensor<8x6xf16, #compound.dims<M, N>> -> tensor<6xf16, #compound.dims<N>>
  %t = compound.reduce max %k : tensor<4x12xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
  %u = compound.map add %s, %t : tensor<6xf16, #compound.dims<N>>, tensor<4xf16, #compound.dims<M>> -> tensor<4x6xf16, #compound.dims<M, N>>
  collective.yield %u : tensor<4x6xf16, #compound.dims<M, N>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'compound.map' op N is split over x, y of one operand and over y, x of another
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a, %a : !G, !G) sharded [{N = ["x", "y"]}, {N = ["y", "x"]}] outs(!G) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN, %k: !MN):
  %u = compound.map add %l, %k : !MN, !MN -> !MN
  collective.yield %u : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.spmd' op yields a value that is partial(add) over axis 'x'
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(tensor<f16, #compound.dims<>>) sharded [{}] {
^bb0(%l: !MN):
  %e = compound.extent "N" of %l : !MN -> tensor<f16, #compound.dims<>>
  collective.yield %e : tensor<f16, #compound.dims<>>
}

// -----

!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'compound.map' op has dimension M sharded over axis 'x' in one operand and replicated in another; an all_gather is missing
collective.mesh @one {x = 1}
%a = "test.op"() : () -> !M
%r = collective.spmd on @one ins(%a, %a : !M, !M) sharded [{M = ["x"]}, {}] outs(!M) sharded [{M = ["x"]}] {
^bb0(%l: !M, %k: !M):
  %s = compound.map add %l, %k : !M, !M -> !M
  collective.yield %s : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_gather' op concatenates M over axis 'x', along which its operand is sharded(N)
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(tensor<16x12xf16, #compound.dims<M, N>>) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %g = collective.all_gather "M" %l on @m ["x"] : !MN -> tensor<16x2xf16, #compound.dims<M, N>>
  collective.yield %g : tensor<16x2xf16, #compound.dims<M, N>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_gather' op concatenates N, split over x, y, over x; only the last axes, in order, can be
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["y"]}] {
^bb0(%l: !MN):
  %g = collective.all_gather "N" %l on @m ["x"] : !MN -> tensor<8x4xf16, #compound.dims<M, N>>
  collective.yield %g : tensor<8x4xf16, #compound.dims<M, N>>
}

// -----

!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_gather' op stacks along the new dimension P, over axis 'x', a value that is replicated, not partial
collective.mesh @m {x = 2, y = 3}
%b = "test.op"() : () -> !M
%r = collective.spmd on @m ins(%b : !M) sharded [{}] outs(!M) sharded [{}] {
^bb0(%l: !M):
  %g = collective.all_gather "P" %l on @m ["x"] : !M -> tensor<8x2xf16, #compound.dims<M, P>>
  collective.yield %l : !M
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.scatter' op splits M over axis 'x', along which it is sharded(N)
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(tensor<4x12xf16, #compound.dims<M, N>>) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %s = collective.scatter "M" %l root 0 on @m ["x"] : !MN -> tensor<4x2xf16, #compound.dims<M, N>>
  collective.yield %s : tensor<4x2xf16, #compound.dims<M, N>>
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.broadcast' op copies its operand over axis 'x', along which it is sharded(N)
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["x", "y"]}] {
^bb0(%l: !MN):
  %s = collective.broadcast %l root 0 on @m ["x"] : !MN -> !MN
  collective.yield %s : !MN
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'collective.spmd' op takes, over axis 'x', a value that only instance 1 holds; a collective.broadcast is missing
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{}] {
^bb0(%l: !MN):
  %g = collective.gather "N" %l root 1 on @m ["x", "y"] : !MN -> !G
  collective.yield %g : !G
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
// CHECK: 'compound.map' op instance 1 holds one operand and instance 0 another; broadcast one of them
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{}] {
^bb0(%l: !MN):
  %g = collective.gather "N" %l root 1 on @m ["x", "y"] : !MN -> !G
  %g0 = collective.gather "N" %l root 0 on @m ["x", "y"] : !MN -> !G
  %s = compound.map add %g, %g0 : !G, !G -> !G
  collective.yield %s : !G
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.spmd' op yields a value that is partial(fold) over axis 'x' where its sharding says replicated; an all_gather and a fold of its merge are missing
collective.mesh @m {x = 2, y = 3}
%a = "test.op"() : () -> !G
%r = collective.spmd on @m ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M) sharded [{}] {
^bb0(%l: !MN):
  %z = compound.fill 0.0 : !M
  %f = compound.fold over "N" ins(%l : !MN) init(%z : !M) step {
  ^bb0(%t: !MN, %old: !M):
    compound.yield %old : !M
  } merge {
  ^bb0(%p: !M, %q: !M):
    compound.yield %p : !M
  } -> !M
  collective.yield %f : !M
}

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8x12xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_to_all' op stacks along the new dimension P, over axis 'x', a value that is replicated, not partial
%r = collective.spmd on @m ins(%x : tensor<8x12xf16, #compound.dims<M, N>>) sharded [{}] outs(tensor<2x8x12xf16, #compound.dims<P, M, N>>) sharded [{M = ["x"]}] {
^bb0(%l: tensor<8x12xf16, #compound.dims<M, N>>):
  %t = collective.all_to_all split "M" concat "P" %l on @m ["x"] : tensor<8x12xf16, #compound.dims<M, N>> -> tensor<2x4x12xf16, #compound.dims<P, M, N>>
  collective.yield %t : tensor<2x4x12xf16, #compound.dims<P, M, N>>
}

// -----

!V = tensor<8x4xf16, #compound.dims<V, D>>
!L = tensor<4x4xf16, #compound.dims<V, D>>
!T = tensor<7xi32, #compound.dims<T>>
!R = tensor<7x4xf16, #compound.dims<T, D>>
collective.mesh @m {x = 2}
%a, %t = "test.op"() : () -> (!V, !T)
// CHECK: 'compound.gather' op gathers along V, which is split over axis 'x'; gather from the whole table
%r = collective.spmd on @m ins(%a, %t : !V, !T) sharded [{V = ["x"]}, {}] outs(!R) sharded [{}] {
^bb0(%l: !L, %i: !T):
  %g = compound.gather %l, %i along "V" : !L, !T -> !R
  collective.yield %g : !R
}

// -----

!G = tensor<8x12xf16, #compound.dims<M, N>>
!MN = tensor<8x6xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
// CHECK: 'compound.map' op operand 0 is partial(add) over axis 'x'; a collective.all_reduce add is missing
collective.mesh @m {x = 2}
%a = "test.op"() : () -> !G
%w = "test.op"() : () -> !M
%r = collective.spmd on @m ins(%a, %w : !G, !M) sharded [{N = ["x"]}, {}] outs(!M) sharded [{}] {
^bb0(%l: !MN, %v: !M):
  %p = compound.reduce add %l : !MN -> !M
  %q = compound.map add %p, %v : !M, !M -> !M
  %s = collective.all_reduce add %q on @m ["x"] : !M -> !M
  collective.yield %s : !M
}

// -----

!V = tensor<8x4xf16, #compound.dims<V, D>>
!L = tensor<4x4xf16, #compound.dims<V, D>>
!T = tensor<7xi32, #compound.dims<T>>
!R = tensor<7x4xf16, #compound.dims<T, D>>
collective.mesh @m {x = 2}
%a, %t = "test.op"() : () -> (!V, !T)
// CHECK: 'compound.gather' op takes rows of shards over axis 'x', and ids are replicated; give each instance ids of its own, along a dimension over the axis
%r = collective.spmd on @m ins(%a, %t : !V, !T) sharded [{V = ["x"]}, {}] outs(!R) sharded [{}] {
^bb0(%l: !L, %ids: !T):
  %g = compound.gather %l, %ids along "V" own : !L, !T -> !R
  collective.yield %g : !R
}
