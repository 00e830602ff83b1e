// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},stream,fuse{strategy=full},tile,outline-kernels' -o %t.mlir
// RUN: comet-opt %t.mlir --split-input-file -p materialize-copies,hoist-copies,bound-loops | filecheck %s
// RUN: comet-opt %t.mlir --split-input-file -p triton-distributed -t mlir | filecheck %s --check-prefix TRITON

// A query sees the keys before it: the loop ends after the last one that a program's queries see.

func.func @causal(%q: tensor<1x2x64x16xf16>, %k: tensor<1x2x256x16xf16>, %v: tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16> {
  %o = compound.attention %q, %k, %v causal : (tensor<1x2x64x16xf16>, tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16>
  func.return %o : tensor<1x2x64x16xf16>
}

// CHECK-LABEL: func.func @causal
// CHECK:         schedule.temporal @m_n [N = {{[0-9]+}}] until 1 ins(%{{[^,]*}}, %last

// TRITON-LABEL: tl.kernel @causal_kernel
// TRITON:         %[[MOST:[^ ]*]] = tl.reduce max %last axis 0
// TRITON:         %[[LEAST:[^ ]*]] = tl.reduce min %last axis 0
// TRITON:         %stop = tl.where
// TRITON:         tl.for %n : i32 = %{{[^ ]*}} : i32 to %stop

// -----

// Without a mask every iteration counts.

func.func @full(%q: tensor<1x2x64x16xf16>, %k: tensor<1x2x256x16xf16>, %v: tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x2x64x16xf16>, tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16>
  func.return %o : tensor<1x2x64x16xf16>
}

// CHECK-LABEL: func.func @full
// CHECK-NOT:     until
// CHECK:         func.return

// -----

// A key is seen by the queries after it: the loop begins with the first one that sees a key of a program.

!Q = tensor<2x512x16xf16, #compound.dims<H, M, E>>
!K = tensor<2x64x16xf16, #compound.dims<H, N, E>>
!S = tensor<2x512x64xf32, #compound.dims<H, M, N>>
!S16 = tensor<2x512x64xf16, #compound.dims<H, M, N>>
func.func @keys(%q: !Q, %k: !K) -> tensor<2x64x16xf32, #compound.dims<H, N, E>> {
  %s = compound.contract %q, %k : !Q, !K -> !S
  %at_m = compound.index : tensor<512xi32, #compound.dims<M>>
  %at_n = compound.index : tensor<64xi32, #compound.dims<N>>
  %seen = compound.map ge %at_m, %at_n : tensor<512xi32, #compound.dims<M>>, tensor<64xi32, #compound.dims<N>> -> tensor<512x64xi1, #compound.dims<M, N>>
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %d = compound.map select %seen, %s, %zero : tensor<512x64xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %d16 = compound.cast %d : !S -> !S16
  %g = compound.contract %d16, %q : !S16, !Q -> tensor<2x64x16xf32, #compound.dims<H, N, E>>
  func.return %g : tensor<2x64x16xf32, #compound.dims<H, N, E>>
}

// CHECK-LABEL: func.func @keys
// CHECK:         schedule.temporal @g_m [M = {{[0-9]+}}] since {{[0-9]+}} ins(

// TRITON-LABEL: tl.kernel @keys_kernel
// TRITON:         %start = tl.where
// TRITON:         %g = tl.for %m : i32 = %start : i32 to

// -----

// The difference of two hidden scores is not hidden: such pairs count, each with exp(0).

!S = tensor<64x512xf32, #compound.dims<M, N>>
func.func @ratios(%s: !S, %t: !S) -> tensor<64xf32, #compound.dims<M>> {
  %at_m = compound.index : tensor<64xi32, #compound.dims<M>>
  %at_n = compound.index : tensor<512xi32, #compound.dims<N>>
  %seen = compound.map ge %at_m, %at_n : tensor<64xi32, #compound.dims<M>>, tensor<512xi32, #compound.dims<N>> -> tensor<64x512xi1, #compound.dims<M, N>>
  %low = compound.fill -1.0e+38 : tensor<f32, #compound.dims<>>
  %a = compound.map select %seen, %s, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %b = compound.map select %seen, %t, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %d = compound.map sub %a, %b : !S, !S -> !S
  %e = compound.map exp %d : !S -> !S
  %r = compound.reduce add %e : !S -> tensor<64xf32, #compound.dims<M>>
  func.return %r : tensor<64xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @ratios
// CHECK-NOT:     until
// CHECK:         func.return

// -----

// Nor is their sum, if one has the other sign.

!S = tensor<64x512xf32, #compound.dims<M, N>>
func.func @negated(%s: !S, %t: !S) -> tensor<64xf32, #compound.dims<M>> {
  %at_m = compound.index : tensor<64xi32, #compound.dims<M>>
  %at_n = compound.index : tensor<512xi32, #compound.dims<N>>
  %seen = compound.map ge %at_m, %at_n : tensor<64xi32, #compound.dims<M>>, tensor<512xi32, #compound.dims<N>> -> tensor<64x512xi1, #compound.dims<M, N>>
  %low = compound.fill -1.0e+38 : tensor<f32, #compound.dims<>>
  %a = compound.map select %seen, %s, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %b = compound.map select %seen, %t, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %n = compound.map neg %b : !S -> !S
  %d = compound.map add %a, %n : !S, !S -> !S
  %e = compound.map exp %d : !S -> !S
  %r = compound.reduce add %e : !S -> tensor<64xf32, #compound.dims<M>>
  func.return %r : tensor<64xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @negated
// CHECK-NOT:     until
// CHECK:         func.return

// -----

// The sum of two hidden scores is hidden, and so is the difference of one and a score.

!S = tensor<64x512xf32, #compound.dims<M, N>>
func.func @sums(%s: !S, %t: !S) -> tensor<64xf32, #compound.dims<M>> {
  %at_m = compound.index : tensor<64xi32, #compound.dims<M>>
  %at_n = compound.index : tensor<512xi32, #compound.dims<N>>
  %seen = compound.map ge %at_m, %at_n : tensor<64xi32, #compound.dims<M>>, tensor<512xi32, #compound.dims<N>> -> tensor<64x512xi1, #compound.dims<M, N>>
  %low = compound.fill -1.0e+38 : tensor<f32, #compound.dims<>>
  %a = compound.map select %seen, %s, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %b = compound.map select %seen, %t, %low : tensor<64x512xi1, #compound.dims<M, N>>, !S, tensor<f32, #compound.dims<>> -> !S
  %ab = compound.map add %a, %b : !S, !S -> !S
  %d = compound.map sub %ab, %t : !S, !S -> !S
  %e = compound.map exp %d : !S -> !S
  %r = compound.reduce add %e : !S -> tensor<64xf32, #compound.dims<M>>
  func.return %r : tensor<64xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @sums
// CHECK:         schedule.temporal @r_n [N = {{[0-9]+}}] until 0 ins(

// -----

// A selection makes one condition of two: both must hold.
!S = tensor<64x512xf32, #compound.dims<M, N>>
!C = tensor<64x512xi1, #compound.dims<M, N>>
!M = tensor<64xi32, #compound.dims<M>>
!N = tensor<512xi32, #compound.dims<N>>
func.func @window(%s: !S) -> tensor<64xf32, #compound.dims<M>> {
  %at_m = compound.index : !M
  %at_n = compound.index : !N
  %width = compound.fill 128.0 : tensor<i32, #compound.dims<>>
  %late = compound.map add %at_n, %width : !N, tensor<i32, #compound.dims<>> -> !N
  %seen = compound.map ge %at_m, %at_n : !M, !N -> !C
  %near = compound.map ge %late, %at_m : !N, !M -> !C
  %no = compound.fill 0.0 : tensor<i1, #compound.dims<>>
  %both = compound.map select %seen, %near, %no : !C, !C, tensor<i1, #compound.dims<>> -> !C
  %low = compound.fill -1.0e+38 : tensor<f32, #compound.dims<>>
  %a = compound.map select %both, %s, %low : !C, !S, tensor<f32, #compound.dims<>> -> !S
  %e = compound.map exp %a : !S -> !S
  %r = compound.reduce add %e : !S -> tensor<64xf32, #compound.dims<M>>
  func.return %r : tensor<64xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @window
// CHECK:         schedule.temporal @r_n [N = {{[0-9]+}}] until 1 ins(%{{[^,]*}}, %at_m

// -----

// Scores are floats: nothing is known of products of integers, however large.

!S = tensor<64x512xf32, #compound.dims<M, N>>
!I = tensor<64x512xi32, #compound.dims<M, N>>
!M = tensor<64xi32, #compound.dims<M>>
!N = tensor<512xi32, #compound.dims<N>>
!number = tensor<i32, #compound.dims<>>
func.func @penalty(%s: !S) -> tensor<64xf32, #compound.dims<M>> {
  %at_m = compound.index : !M
  %at_n = compound.index : !N
  %d = compound.map sub %at_m, %at_n : !M, !N -> !I
  %zero = compound.fill 0.0 : !number
  %minus = compound.fill -1.0 : !number
  %much = compound.fill 1.0e+06 : !number
  %past = compound.map min %d, %zero : !I, !number -> !I
  %step = compound.map max %past, %minus : !I, !number -> !I
  %term = compound.map mult %step, %much : !I, !number -> !I
  %low = compound.cast %term : !I -> !S
  %a = compound.map add %s, %low : !S, !S -> !S
  %e = compound.map exp %a : !S -> !S
  %r = compound.reduce add %e : !S -> tensor<64xf32, #compound.dims<M>>
  func.return %r : tensor<64xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @penalty
// CHECK-NOT:     until
// CHECK:         func.return
