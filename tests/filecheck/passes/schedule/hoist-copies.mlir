// RUN: comet-opt %s -p materialize-copies,hoist-copies | filecheck %s
// RUN: comet-opt %s -p outline-kernels,materialize-copies,hoist-copies,lower-to-triton | filecheck %s --check-prefix TRITON
// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s --check-prefix TRITON

!q = tensor<32x64xf16, #compound.dims<M, D @HBM>>
!k = tensor<128x64xf16, #compound.dims<N, D @HBM>>
!top = tensor<32xf32, #compound.dims<M @HBM>>
!qm = tensor<16x64xf16, #compound.dims<M, D @HBM>>
!kn = tensor<64x64xf16, #compound.dims<N, D @HBM>>
!knn = tensor<32x64xf16, #compound.dims<N, D @HBM>>
!qt = tensor<16x64xf16, #compound.dims<M, D @SMEM>>
!kt = tensor<32x64xf16, #compound.dims<N, D @SMEM>>
!qd = tensor<16x32xf16, #compound.dims<M, D @SMEM>>
!kd = tensor<64x32xf16, #compound.dims<N, D @SMEM>>
!st = tensor<16x32xf32, #compound.dims<M, N @REG>>
!sd = tensor<16x64xf32, #compound.dims<M, N @REG>>
!mt = tensor<16xf32, #compound.dims<M @REG>>

// No loop changes the tile of %q: it is loaded before all of them. That of %k changes.

func.func @whole(%q: !q, %k: !k) -> !top {
  %top = schedule.spatial on grid [g0: M = 2] ins(%q, %k : !q, !k) outs(!top) {
  ^bb0(%q1: !qm, %k1: !k):
    %top1 = schedule.temporal [N = 2] ins(%q1, %k1 : !qm, !k) outs(!mt) combine ["max"] {
    ^bb1(%q2: !qm, %k2: !kn):
      %top2 = schedule.temporal [N = 2] ins(%q2, %k2 : !qm, !kn) outs(!mt) combine ["max"] {
      ^bb2(%q3: !qm, %k3: !knn):
        %s = schedule.temporal [D = 1] ins(%q3, %k3 : !qm, !knn) outs(!st) combine ["add"] {
        ^bb3(%q4: !qt, %k4: !kt):
          %s1 = compound.contract %q4, %k4 : !qt, !kt -> !st
          schedule.yield %s1 : !st
        }
        %part = compound.reduce max %s : !st -> !mt
        schedule.yield %part : !mt
      }
      schedule.yield %top2 : !mt
    }
    schedule.yield %top1 : !mt
  }
  func.return %top : !top
}

// CHECK-LABEL: func.func @whole
// CHECK:         schedule.spatial
// CHECK-NEXT:    ^bb0(%q1: {{.*}}, %k1: {{.*}}):
// CHECK-NEXT:      %[[Q:.*]] = schedule.copy %q1 : {{.*}} @SMEM>>
// CHECK-NEXT:      schedule.temporal [N = 2] ins(%k1, %[[Q]]
// CHECK:             schedule.temporal [N = 2] ins(%k2, %[[Q1:.*]] :
// CHECK:               schedule.temporal [D = 1] ins(%k3, %[[Q2:.*]] :
// CHECK-NEXT:          ^bb0(%k4: {{.*}}, %[[Q3:.*]]: {{.*}}):
// CHECK-NEXT:            %[[K:.*]] = schedule.copy %k4
// CHECK-NEXT:            compound.contract %[[Q3]], %[[K]]

// TRITON-LABEL: tl.kernel @whole_kernel
// TRITON-NOT:     tl.for
// TRITON:         %q_tile = tl.load
// TRITON:         tl.for %n
// TRITON:           tl.for %n
// TRITON-NOT:         %q_tile = tl.load
// TRITON:             %k_tile = tl.load
// TRITON:             tl.dot %q_tile

// The loop over D changes both tiles: it loads both.

func.func @cut(%q: !q, %k: !k) -> !top {
  %top = schedule.spatial on grid [g0: M = 2] ins(%q, %k : !q, !k) outs(!top) {
  ^bb0(%q1: !qm, %k1: !k):
    %top1 = schedule.temporal [N = 2] ins(%q1, %k1 : !qm, !k) outs(!mt) combine ["max"] {
    ^bb1(%q2: !qm, %k2: !kn):
      %s = schedule.temporal [D = 2] ins(%q2, %k2 : !qm, !kn) outs(!sd) combine ["add"] {
      ^bb2(%q3: !qd, %k3: !kd):
        %s1 = compound.contract %q3, %k3 : !qd, !kd -> !sd
        schedule.yield %s1 : !sd
      }
      %part = compound.reduce max %s : !sd -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %top1 : !mt
  }
  func.return %top : !top
}

// CHECK-LABEL: func.func @cut
// CHECK:         schedule.temporal [N = 2] ins(%q1, %k1
// CHECK:           schedule.temporal [D = 2] ins(%q2, %k2
// CHECK:             schedule.copy %q3 : {{.*}} @SMEM>>
// CHECK-NEXT:        schedule.copy %k3 : {{.*}} @SMEM>>

// TRITON-LABEL: tl.kernel @cut_kernel
// TRITON-NOT:     tl.load
// TRITON:         tl.for %n
// TRITON-NOT:       tl.load
// TRITON:           tl.for %d
// TRITON:             %q_tile = tl.load
// TRITON:             %k_tile = tl.load

// Beyond its end a tile holds -inf for one of its uses and 0 for the other: each loads its own.

!odd = tensor<32x50xf16, #compound.dims<M, D @HBM>>
!oddm = tensor<16x50xf16, #compound.dims<M, D @HBM>>
!oddt = tensor<16x50xf16, #compound.dims<M, D @SMEM>>
!n = tensor<128xf16, #compound.dims<N @HBM>>
!nt = tensor<64xf16, #compound.dims<N @SMEM>>
!hm = tensor<16xf16, #compound.dims<M @REG>>
!ht = tensor<16x64xf16, #compound.dims<M, N @REG>>
!res = tensor<32xf16, #compound.dims<M @HBM>>

func.func @paddings(%q: !odd, %k: !n) -> !res {
  %r = schedule.spatial on grid [g0: M = 2] ins(%q, %k : !odd, !n) outs(!res) {
  ^bb0(%q1: !oddm, %k1: !n):
    %r1 = schedule.temporal [N = 2] ins(%q1, %k1 : !oddm, !n) outs(!hm) combine ["max"] {
    ^bb1(%q2: !oddm, %k2: !nt):
      %high = schedule.temporal [D = 1] ins(%q2 : !oddm) outs(!hm) combine ["max"] {
      ^bb2(%q3: !oddt):
        %h = compound.reduce max %q3 : !oddt -> !hm
        schedule.yield %h : !hm
      }
      %sum = schedule.temporal [D = 1] ins(%q2 : !oddm) outs(!hm) combine ["add"] {
      ^bb2(%q3: !oddt):
        %a = compound.reduce add %q3 : !oddt -> !hm
        schedule.yield %a : !hm
      }
      %both = compound.map add %high, %sum : !hm, !hm -> !hm
      %wide = compound.map add %both, %k2 : !hm, !nt -> !ht
      %part = compound.reduce max %wide : !ht -> !hm
      schedule.yield %part : !hm
    }
    schedule.yield %r1 : !hm
  }
  func.return %r : !res
}

// CHECK-LABEL: func.func @paddings
// CHECK:         schedule.spatial
// CHECK-NEXT:    ^bb0(%q1: {{.*}}, %k1: {{.*}}):
// CHECK-NEXT:      schedule.copy %q1 pad max :
// CHECK-NEXT:      schedule.copy %q1 :
// CHECK-NEXT:      schedule.temporal [N = 2]

// TRITON-LABEL: tl.kernel @paddings_kernel
// TRITON-NOT:     tl.for
// TRITON:         %q_tile = tl.load
// TRITON:         %q_tile_1 = tl.load
// TRITON:         tl.for %n

// Copies that meet before a loop, and are alike, become one.

func.func @shared(%q: !odd, %k: !n) -> !res {
  %r = schedule.spatial on grid [g0: M = 2] ins(%q, %k : !odd, !n) outs(!res) {
  ^bb0(%q1: !oddm, %k1: !n):
    %r1 = schedule.temporal [N = 2] ins(%q1, %k1 : !oddm, !n) outs(!hm) combine ["max"] {
    ^bb1(%q2: !oddm, %k2: !nt):
      %one = schedule.temporal [D = 1] ins(%q2 : !oddm) outs(!hm) combine ["add"] {
      ^bb2(%q3: !oddt):
        %h = compound.reduce add %q3 : !oddt -> !hm
        schedule.yield %h : !hm
      }
      %two = schedule.temporal [D = 1] ins(%q2 : !oddm) outs(!hm) combine ["add"] {
      ^bb2(%q3: !oddt):
        %a = compound.reduce add %q3 : !oddt -> !hm
        schedule.yield %a : !hm
      }
      %both = compound.map add %one, %two : !hm, !hm -> !hm
      %wide = compound.map add %both, %k2 : !hm, !nt -> !ht
      %part = compound.reduce max %wide : !ht -> !hm
      schedule.yield %part : !hm
    }
    schedule.yield %r1 : !hm
  }
  func.return %r : !res
}

// CHECK-LABEL: func.func @shared
// CHECK:         %[[Q:.*]] = schedule.copy %q1 :
// CHECK-NEXT:    schedule.temporal [N = 2] ins(%k1, %[[Q]] :
// CHECK:           schedule.temporal [D = 1] ins(%[[Q1:.*]] :
// CHECK:           schedule.temporal [D = 1] ins(%[[Q1]] :

// TRITON-LABEL: tl.kernel @shared_kernel
// TRITON:         %q_tile = tl.load
// TRITON-NOT:     %q_tile_1 = tl.load

// The tile of %b changes in the loop over M only: the node is split, and its inner part adds
// to the sum of the outer one.

!a = tensor<64x64xf16, #compound.dims<M, K @HBM>>
!b = tensor<64xf16, #compound.dims<M @HBM>>
!am = tensor<32x32xf16, #compound.dims<M, K @SMEM>>
!bm = tensor<32xf16, #compound.dims<M @SMEM>>
!p = tensor<32x32xf16, #compound.dims<M, K @REG>>
!sum = tensor<f16, #compound.dims<@REG>>
!out = tensor<f16, #compound.dims<@HBM>>

func.func @between(%a: !a, %b: !b) -> !out {
  %r = schedule.spatial on grid [] ins(%a, %b : !a, !b) outs(!out) {
  ^bb0(%a1: !a, %b1: !b):
    %r1 = schedule.temporal [M = 2, K = 2] ins(%a1, %b1 : !a, !b) outs(!sum) combine ["add"] {
    ^bb1(%a2: !am, %b2: !bm):
      %c = compound.map mult %a2, %b2 : !am, !bm -> !p
      %s = compound.reduce add %c : !p -> !sum
      schedule.yield %s : !sum
    }
    schedule.yield %r1 : !sum
  }
  func.return %r : !out
}

// CHECK-LABEL: func.func @between
// CHECK:         %[[R:.*]] = schedule.temporal [M = 2] ins(%a1, %b1 : {{.*}}) outs(tensor<f16, #compound.dims<@REG>>) combine ["add"] {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}):
// CHECK-NEXT:      %[[B1:.*]] = schedule.copy %[[B]]
// CHECK-NEXT:      %[[S:.*]] = schedule.temporal [K = 2] ins(%[[A]], %[[B1]] : {{.*}}) outs(tensor<f16, #compound.dims<@REG>>) combine ["add"] {
// CHECK:             schedule.copy
// CHECK-NOT:         schedule.copy
// CHECK:           schedule.yield %[[S]]
// CHECK:         schedule.copy %[[R]]

// TRITON-LABEL: tl.kernel @between_kernel
// TRITON:         tl.for %m{{.*}} iter_args(%[[ACC:.*]] =
// TRITON:           %b_tile = tl.load
// TRITON:           tl.for %k{{.*}} iter_args(%{{.*}} = %[[ACC]])
// TRITON:             %a_tile = tl.load

// What is first read after a loop stays in the outer loop, though that does not change it.

!left = tensor<32x64xf16, #compound.dims<M, K @HBM>>
!leftm = tensor<16x64xf16, #compound.dims<M, K @HBM>>
!leftt = tensor<16x32xf16, #compound.dims<M, K @SMEM>>
!right = tensor<64x16xf16, #compound.dims<K, N @HBM>>
!rightt = tensor<32x16xf16, #compound.dims<K, N @SMEM>>
!shift = tensor<16xf32, #compound.dims<N @HBM>>
!shiftt = tensor<16xf32, #compound.dims<N @REG>>
!made = tensor<32x16xf32, #compound.dims<M, N @HBM>>
!madet = tensor<16x16xf32, #compound.dims<M, N @REG>>

func.func @late(%a: !left, %b: !right, %v: !shift) -> !made {
  %y = schedule.spatial on grid [g0: M = 1] ins(%a, %b, %v : !left, !right, !shift) outs(!made) {
  ^bb0(%a1: !left, %b1: !right, %v1: !shift):
    %y1 = schedule.temporal [M = 2] ins(%a1, %b1, %v1 : !left, !right, !shift) outs(!made) {
    ^bb1(%a2: !leftm, %b2: !right, %v2: !shiftt):
      %c = schedule.temporal [K = 2] ins(%a2, %b2 : !leftm, !right) outs(!madet) combine ["add"] {
      ^bb2(%a3: !leftt, %b3: !rightt):
        %c1 = compound.contract %a3, %b3 : !leftt, !rightt -> !madet
        schedule.yield %c1 : !madet
      }
      %s = compound.map add %c, %v2 : !madet, !shiftt -> !madet
      schedule.yield %s : !madet
    }
    schedule.yield %y1 : !made
  }
  func.return %y : !made
}

// CHECK-LABEL: func.func @late
// CHECK-NOT:     schedule.copy
// CHECK:         schedule.temporal [M = 2] ins(%a1, %b1, %v1
// CHECK:           schedule.temporal [K = 2]
// CHECK:           %[[V:.*]] = schedule.copy %v2 : {{.*}} @REG>>
// CHECK-NEXT:      compound.map add %c, %[[V]]

// TRITON-LABEL: tl.kernel @late_kernel
// TRITON:         tl.for %m
// TRITON-NOT:       %v_tile = tl.load
// TRITON:           tl.for %k
// TRITON:           %v_tile = tl.load
