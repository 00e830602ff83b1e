// RUN: comet-opt %s -p lower-views | filecheck %s

!X = tensor<4x6xf32, #compound.dims<M, N>>

// Pads become concats with constants, masks too; slices name their dimension.

func.func @padded(%x: !X) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.pad %x <-inf from N = 6> : !X -> tensor<4x9xf32, #compound.dims<M, N>>
  %z = compound.pad %y <1.5 from N = 8> : tensor<4x9xf32, #compound.dims<M, N>> -> tensor<4x9xf32, #compound.dims<M, N>>
  %s = compound.slice %z : tensor<4x9xf32, #compound.dims<M, N>> -> tensor<3x7xf32, #compound.dims<M, N>>
  %m = compound.reduce max %s : tensor<3x7xf32, #compound.dims<M, N>> -> tensor<3xf32, #compound.dims<M>>
  %r = compound.pad %m <0.0 from M = 3> : tensor<3xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %e = compound.map exp %r : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %e : tensor<4xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @padded
// CHECK-NEXT:   %y = compound.fill -inf : tensor<4x3xf32, #compound.dims<M, N>>
// CHECK-NEXT:   %y_1 = compound.concat "N" %x, %y
// CHECK-NEXT:   %y_2 = compound.slice %y_1 "N"[0, 8]
// CHECK-NEXT:   %z = compound.fill 1.500000e+00 : tensor<4x1xf32, #compound.dims<M, N>>
// CHECK-NEXT:   %z_1 = compound.concat "N" %y_2, %z
// CHECK-NEXT:   %z_2 = compound.slice %z_1 "M"[0, 3]
// CHECK-NEXT:   %z_3 = compound.slice %z_2 "N"[0, 7]
// CHECK-NEXT:   %m = compound.reduce max %z_3
// CHECK-NEXT:   %r = compound.fill 0.000000e+00 : tensor<1xf32, #compound.dims<M>>
// CHECK-NEXT:   %r_1 = compound.concat "M" %m, %r
// CHECK-NEXT:   %e = compound.map exp %r_1

// A dimension of a slice can be split, as the parts are strides in memory; not merged,
// nor can that of a concat be split. What is returned is stored.

func.func @copied(%x: !X) -> (tensor<20xf32, #compound.dims<E>>, tensor<4x2x2xf32, #compound.dims<M, P, Q>>, tensor<4x2x6xf32, #compound.dims<M, P, Q>>) {
  %s = compound.slice %x "N" [1, 5] : !X -> tensor<4x5xf32, #compound.dims<M, N>>
  %e = compound.rename %s merge "M" : tensor<4x5xf32, #compound.dims<M, N>> -> tensor<20xf32, #compound.dims<E>>
  %t = compound.slice %x "N" [2, 4] : !X -> tensor<4x4xf32, #compound.dims<M, N>>
  %p = compound.rename %t split "N" : tensor<4x4xf32, #compound.dims<M, N>> -> tensor<4x2x2xf32, #compound.dims<M, P, Q>>
  %c = compound.concat "N" %x, %x : !X, !X -> tensor<4x12xf32, #compound.dims<M, N>>
  %q = compound.rename %c split "N" : tensor<4x12xf32, #compound.dims<M, N>> -> tensor<4x2x6xf32, #compound.dims<M, P, Q>>
  func.return %e, %p, %q : tensor<20xf32, #compound.dims<E>>, tensor<4x2x2xf32, #compound.dims<M, P, Q>>, tensor<4x2x6xf32, #compound.dims<M, P, Q>>
}

// CHECK-LABEL: func.func @copied
// CHECK-NEXT:   %s = compound.slice %x "N"[1, 5]
// CHECK-NEXT:   %s_1 = compound.map copy %s
// CHECK-NEXT:   %e = compound.rename %s_1 merge "M"
// CHECK-NEXT:   %t = compound.slice %x "N"[2, 4]
// CHECK-NEXT:   %p = compound.rename %t split "N"
// CHECK-NEXT:   %c = compound.concat "N" %x, %x
// CHECK-NEXT:   %c_1 = compound.map copy %c
// CHECK-NEXT:   %q = compound.rename %c_1 split "N"
// CHECK-NEXT:   %e_1 = compound.map copy %e
// CHECK-NEXT:   %p_1 = compound.map copy %p
// CHECK-NEXT:   %q_1 = compound.map copy %q
// CHECK-NEXT:   func.return %e_1, %p_1, %q_1

// A negated part is a factor of -1, so that no kernel has to store it first.

func.func @turned(%x: !X, %y: !X) -> !X {
  %a = compound.slice %x "N" [2, 4] : !X -> tensor<4x4xf32, #compound.dims<M, N>>
  %b = compound.slice %x "N" [0, 2] : !X -> tensor<4x2xf32, #compound.dims<M, N>>
  %n = compound.map neg %a : tensor<4x4xf32, #compound.dims<M, N>> -> tensor<4x4xf32, #compound.dims<M, N>>
  %r = compound.concat "N" %n, %b : tensor<4x4xf32, #compound.dims<M, N>>, tensor<4x2xf32, #compound.dims<M, N>> -> !X
  %s = compound.map add %r, %y : !X, !X -> !X
  func.return %s : !X
}

// CHECK-LABEL: func.func @turned
// CHECK-NEXT:   %a = compound.slice %x "N"[2, 4]
// CHECK-NEXT:   %b = compound.slice %x "N"[0, 2]
// CHECK-NEXT:   %n = compound.map neg %a
// CHECK-NEXT:   %n_1 = compound.fill -1.000000e+00 : tensor<4xf32, #compound.dims<N>>
// CHECK-NEXT:   %b_1 = compound.fill 1.000000e+00 : tensor<2xf32, #compound.dims<N>>
// CHECK-NEXT:   %r = compound.concat "N" %a, %b
// CHECK-NEXT:   %r_1 = compound.concat "N" %n_1, %b_1
// CHECK-NEXT:   %r_2 = compound.map mult %r, %r_1
// CHECK-NEXT:   %s = compound.map add %r_2, %y

// What ranks have sent is copied before a part of it is read, and a part before it is
// sent.

collective.mesh @gpus {rank = 2}
func.func @sent(%x: !X) -> tensor<4x1xf32, #compound.dims<M, N>> {
  %r = collective.spmd on @gpus ins(%x : !X) sharded [{N = ["rank"]}] outs(tensor<4x1xf32, #compound.dims<M, N>>) sharded [{}] {
  ^bb0(%local: tensor<4x3xf32, #compound.dims<M, N>>):
    %t = compound.slice %local "M" [0, 3] : tensor<4x3xf32, #compound.dims<M, N>> -> tensor<3x3xf32, #compound.dims<M, N>>
    %all = collective.all_gather "N" %t on @gpus ["rank"] : tensor<3x3xf32, #compound.dims<M, N>> -> tensor<3x6xf32, #compound.dims<M, N>>
    %s = compound.slice %all "N" [5, 1] : tensor<3x6xf32, #compound.dims<M, N>> -> tensor<3x1xf32, #compound.dims<M, N>>
    %u = compound.slice %all "N" [0, 1] : tensor<3x6xf32, #compound.dims<M, N>> -> tensor<3x1xf32, #compound.dims<M, N>>
    %v = compound.slice %u "M" [0, 1] : tensor<3x1xf32, #compound.dims<M, N>> -> tensor<1x1xf32, #compound.dims<M, N>>
    %c = compound.concat "M" %s, %v : tensor<3x1xf32, #compound.dims<M, N>>, tensor<1x1xf32, #compound.dims<M, N>> -> tensor<4x1xf32, #compound.dims<M, N>>
    collective.yield %c : tensor<4x1xf32, #compound.dims<M, N>>
  }
  func.return %r : tensor<4x1xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @sent
// CHECK:          %t = compound.slice %local "M"[0, 3]
// CHECK-NEXT:     %t_1 = compound.map copy %t
// CHECK-NEXT:     %all = collective.all_gather "N" %t_1
// CHECK-NEXT:     %all_1 = compound.map copy %all
// CHECK-NEXT:     %s = compound.slice %all_1 "N"[5, 1]
// CHECK-NEXT:     %u = compound.slice %all_1 "N"[0, 1]
// CHECK:          %c_1 = compound.map copy %c
// CHECK-NEXT:     collective.yield %c_1

// So is a renamed value before it is sent.

func.func @renamed(%x: !X) -> tensor<4xf32, #compound.dims<P>> {
  %r = collective.spmd on @gpus ins(%x : !X) sharded [{N = ["rank"]}] outs(tensor<4xf32, #compound.dims<P>>) sharded [{}] {
  ^bb0(%local: tensor<4x3xf32, #compound.dims<M, N>>):
    %s = compound.reduce add %local : tensor<4x3xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %p = compound.rename %s : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<P>>
    %t = collective.all_reduce add %p on @gpus ["rank"] : tensor<4xf32, #compound.dims<P>> -> tensor<4xf32, #compound.dims<P>>
    collective.yield %t : tensor<4xf32, #compound.dims<P>>
  }
  func.return %r : tensor<4xf32, #compound.dims<P>>
}

// CHECK-LABEL: func.func @renamed
// CHECK:          %p = compound.rename %s
// CHECK-NEXT:     %p_1 = compound.map copy %p
// CHECK-NEXT:     %t = collective.all_reduce add %p_1

// Ranks pad dimensions that each of them has whole.

func.func @each_whole(%x: !X) -> tensor<8x6xf32, #compound.dims<M, N>> {
  %r = collective.spmd on @gpus ins(%x : !X) sharded [{N = ["rank"]}] outs(tensor<8x6xf32, #compound.dims<M, N>>) sharded [{N = ["rank"]}] {
  ^bb0(%local: tensor<4x3xf32, #compound.dims<M, N>>):
    %y = compound.pad %local <0.0 from M = 4> : tensor<4x3xf32, #compound.dims<M, N>> -> tensor<8x3xf32, #compound.dims<M, N>>
    %e = compound.map exp %y : tensor<8x3xf32, #compound.dims<M, N>> -> tensor<8x3xf32, #compound.dims<M, N>>
    collective.yield %e : tensor<8x3xf32, #compound.dims<M, N>>
  }
  func.return %r : tensor<8x6xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @each_whole
// CHECK:          %y = compound.fill 0.000000e+00 : tensor<4x3xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %y_1 = compound.concat "M" %local, %y
// CHECK-NEXT:     %e = compound.map exp %y_1

// Rows are chosen of one tensor in memory. They have no strides, so that they are copied
// before they are joined, sent or chosen from; as are pages and what is in them, seen as
// one dimension, before that one is split.

!T = tensor<5xi32, #compound.dims<T>>
!R = tensor<5x6xf32, #compound.dims<T, N>>
!E = tensor<30xf32, #compound.dims<E>>
!J = tensor<10x6xf32, #compound.dims<T, N>>
func.func @rows(%x: !X, %i: !T) -> (tensor<3x10xf32, #compound.dims<P, Q>>, !R, !J, !J) {
  %r = compound.gather %x, %i along "M" : !X, !T -> !R
  %e = compound.rename %r merge "T" : !R -> !E
  %p = compound.rename %e split "E" : !E -> tensor<3x10xf32, #compound.dims<P, Q>>
  %j = compound.concat "T" %r, %r : !R, !R -> !J
  %c = compound.concat "M" %x, %x : !X, !X -> tensor<8x6xf32, #compound.dims<M, N>>
  %k = compound.concat "T" %i, %i : !T, !T -> tensor<10xi32, #compound.dims<T>>
  %s = compound.gather %c, %k along "M" : tensor<8x6xf32, #compound.dims<M, N>>, tensor<10xi32, #compound.dims<T>> -> !J
  func.return %p, %r, %j, %s : tensor<3x10xf32, #compound.dims<P, Q>>, !R, !J, !J
}

// CHECK-LABEL: func.func @rows
// CHECK-NEXT:   %r = compound.gather %x, %i along "M"
// CHECK-NEXT:   %e = compound.rename %r merge "T"
// CHECK-NEXT:   %e_1 = compound.map copy %e
// CHECK-NEXT:   %p = compound.rename %e_1 split "E"
// CHECK-NEXT:   %r_1 = compound.map copy %r
// CHECK-NEXT:   %j = compound.concat "T" %r_1, %r_1
// CHECK-NEXT:   %c = compound.concat "M" %x, %x
// CHECK-NEXT:   %k = compound.concat "T" %i, %i
// CHECK-NEXT:   %c_1 = compound.map copy %c
// CHECK-NEXT:   %s = compound.gather %c_1, %k along "M"
// CHECK-NEXT:   %p_1 = compound.map copy %p
// CHECK-NEXT:   %j_1 = compound.map copy %j
// CHECK-NEXT:   %s_1 = compound.map copy %s
// CHECK-NEXT:   func.return %p_1, %r_1, %j_1, %s_1

// Positions that are returned are stored.
func.func @positions(%x: tensor<4xf32, #compound.dims<M>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<8xi32, #compound.dims<N>>) {
  %e = compound.map exp %x : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %n = compound.index : tensor<8xi32, #compound.dims<N>>
  func.return %e, %n : tensor<4xf32, #compound.dims<M>>, tensor<8xi32, #compound.dims<N>>
}

// CHECK-LABEL: func.func @positions
// CHECK:         %n = compound.index
// CHECK-NEXT:    %n_1 = compound.map copy %n
// CHECK-NEXT:    func.return %e, %n_1

// A renaming of what an op makes is returned as it is: one memory, another shape.
func.func @reshaped(%x: tensor<4x6xf32, #compound.dims<M, N>>) -> tensor<24xf32, #compound.dims<E>> {
  %y = compound.map exp %x : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x6xf32, #compound.dims<M, N>>
  %e = compound.rename %y merge "M" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<24xf32, #compound.dims<E>>
  func.return %e : tensor<24xf32, #compound.dims<E>>
}

// CHECK-LABEL: func.func @reshaped
// CHECK-NOT:     copy
// CHECK:         func.return %e

// A rank that has the whole of a value loads the shard that a scatter would give it.

collective.mesh @ranks {rank = 2}

func.func @own_shard(%x: !X) -> !X {
  %y = collective.spmd on @ranks ins(%x : !X) sharded [{}] outs(!X) sharded [{M = ["rank"]}] {
  ^bb0(%a: !X):
    %b = compound.map neg %a : !X -> !X
    %c = collective.scatter "M" %b root 0 on @ranks ["rank"] : !X -> tensor<2x6xf32, #compound.dims<M, N>>
    %d = compound.map exp %c : tensor<2x6xf32, #compound.dims<M, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
    collective.yield %d : tensor<2x6xf32, #compound.dims<M, N>>
  }
  func.return %y : !X
}

// CHECK-LABEL: func.func @own_shard
// CHECK:        %b = compound.map neg %a
// CHECK-NEXT:   %c = compound.index of 4 over ["rank"] : tensor<2xi32, #compound.dims<M_shard>>
// CHECK-NEXT:   %c_1 = compound.gather %b, %c along "M"
// CHECK-NEXT:   %c_2 = compound.rename %c_1 : tensor<2x6xf32, #compound.dims<M_shard, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
// CHECK-NEXT:   %d = compound.map exp %c_2

// What equals its operand is folded first: what is split is a part of the concat.
!Y = tensor<4x8xf32, #compound.dims<M, N>>
func.func @scaled_by_one(%x: !X) -> tensor<4x2x2xf32, #compound.dims<M, P, Q>> {
  %one = compound.fill 1.0 : tensor<f32, #compound.dims<>>
  %zero = compound.fill 0.0 : tensor<4x2xf32, #compound.dims<M, N>>
  %c = compound.concat "N" %x, %zero : !X, tensor<4x2xf32, #compound.dims<M, N>> -> !Y
  %o = compound.map mult %c, %one : !Y, tensor<f32, #compound.dims<>> -> !Y
  %s = compound.slice %o "N"[2, 4] : !Y -> tensor<4x4xf32, #compound.dims<M, N>>
  %n = compound.rename %s : tensor<4x4xf32, #compound.dims<M, N>> -> tensor<4x4xf32, #compound.dims<M, P>>
  %r = compound.rename %n split "P" : tensor<4x4xf32, #compound.dims<M, P>> -> tensor<4x2x2xf32, #compound.dims<M, P, Q>>
  %e = compound.map exp %r : tensor<4x2x2xf32, #compound.dims<M, P, Q>> -> tensor<4x2x2xf32, #compound.dims<M, P, Q>>
  func.return %e : tensor<4x2x2xf32, #compound.dims<M, P, Q>>
}

// CHECK-LABEL: func.func @scaled_by_one
// CHECK:        %s = compound.slice %c "N"[2, 4]
// CHECK-NEXT:   %n = compound.rename %s
// CHECK-NEXT:   %n_1 = compound.map copy %n
// CHECK-NEXT:   %r = compound.rename %n_1 split "P"

// A value that only the root has is sent; the pass leaves what is in no region, too.

func.func @of_the_root(%x: !X) -> !X {
  %y = collective.spmd on @ranks ins(%x : !X) sharded [{N = ["rank"]}] outs(!X) sharded [{M = ["rank"]}] {
  ^bb0(%a: tensor<4x3xf32, #compound.dims<M, N>>):
    %b = collective.gather "N" %a root 0 on @ranks ["rank"] : tensor<4x3xf32, #compound.dims<M, N>> -> !X
    %c = collective.scatter "M" %b root 0 on @ranks ["rank"] : !X -> tensor<2x6xf32, #compound.dims<M, N>>
    %d = compound.map exp %c : tensor<2x6xf32, #compound.dims<M, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
    collective.yield %d : tensor<2x6xf32, #compound.dims<M, N>>
  }
  func.return %y : !X
}

func.func @in_no_region(%x: !X) -> tensor<2x6xf32, #compound.dims<M, N>> {
  %c = collective.scatter "M" %x root 0 on @ranks ["rank"] : !X -> tensor<2x6xf32, #compound.dims<M, N>>
  %d = compound.map exp %c : tensor<2x6xf32, #compound.dims<M, N>> -> tensor<2x6xf32, #compound.dims<M, N>>
  func.return %d : tensor<2x6xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @of_the_root
// CHECK:        %b = collective.gather "N" %a root 0
// CHECK-NEXT:   %c = collective.scatter "M" %b root 0
// CHECK-NEXT:   %d = compound.map exp %c
// CHECK-LABEL: func.func @in_no_region
// CHECK-NEXT:   %c = collective.scatter "M" %x root 0
// CHECK-NEXT:   %d = compound.map exp %c
