// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s

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

// CHECK-LABEL: tl.kernel @whole_kernel
// CHECK-NOT:     tl.for
// CHECK:         %q_tile = tl.load
// CHECK:         tl.for %n
// CHECK:           tl.for %n
// CHECK-NOT:         %q_tile = tl.load
// CHECK:             %k_tile = tl.load
// CHECK:             tl.dot %q_tile

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

// CHECK-LABEL: tl.kernel @cut_kernel
// CHECK-NOT:     tl.load
// CHECK:         tl.for %n
// CHECK-NOT:       tl.load
// CHECK:           tl.for %d
// CHECK:             %q_tile = tl.load
// CHECK:             %k_tile = tl.load

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

// CHECK-LABEL: tl.kernel @paddings_kernel
// CHECK-NOT:     tl.load
// CHECK:         tl.for %n
// CHECK:           %q_tile = tl.load
// CHECK:           %q_tile_1 = tl.load
